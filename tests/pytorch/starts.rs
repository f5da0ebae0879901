//! Every kind of start: how Python begins and where its PyTorch is, and what is said where there is none, half a one, or one that is
//! not known.

use std::process::Command;

use crate::harmless::{program, recorded};
use crate::memscope::{Place, stderr, stdout};
use crate::torch::python;

/// Each way in which Python can be started and PyTorch imported.
#[test]
fn the_shim_is_in_every_kind_of_start() {
    let Some(python) = python("the_shim_is_in_every_kind_of_start") else { return };
    let place = Place::new();
    let small = program("small.py");
    let text = std::fs::read_to_string(&small).expect("a program");
    std::fs::write(place.path("small.py"), &text).expect("a program");
    // A first import that fails, of something else with that name; then PyTorch.
    std::fs::create_dir_all(place.path("broken/torch")).expect("a folder");
    std::fs::write(place.path("broken/torch/part.py"), "").expect("a file");
    std::fs::write(place.path("broken/torch/__init__.py"), "import torch.part\n1 / 0").expect("a file");
    let site = "import sys, glob, os; sys.path += glob.glob(os.path.dirname(os.path.dirname(sys.executable)) + \
                '/lib/python*/site-packages'); ";
    let failing = "import sys; sys.path.insert(0, 'broken')\n\
                   for _ in range(2):\n try: import torch\n except ZeroDivisionError: print('failed')\n\
                   sys.path.pop(0); import torch.nn; exec(compile(open('small.py').read(), '<cell 1>', 'exec'))";
    // In this one the shim finds a Python without a lock, and does without the functions that need one.
    let by_name = format!(
        "{site} sys._is_gil_enabled = lambda: False; import importlib; importlib.import_module('torch'); import small; small.train()"
    );
    let starts: [(&[&str], &str); 4] = [
        (&["-I", &small.to_string_lossy()], "trained 90300\n"),
        (&["-S", "-E", "-c", &by_name], "trained 90300\n"),
        (&["-c", failing], "failed\nfailed\ntrained 90300\n"),
        (&["-m", "small"], "trained 90300\n"),
    ];
    for (arguments, expected) in starts {
        let run = recorded(&place, &python, |command| {
            command.args(arguments);
        });
        assert_eq!((stdout(&run.output).as_str(), stderr(&run.output).as_str()), (expected, ""), "{arguments:?}");
        assert!(run.output.status.success());
        assert!(run.paths_of(7 * 300 * 4).contains("Net/layer"), "{arguments:?}");
        assert!(run.has_gradient("layer.bias.grad", 300 * 4), "{arguments:?}");
    }
}

/// A prefix as conda makes it: an interpreter of its own beside its library, no `pyvenv.cfg`.
#[test]
fn an_environment_like_condas() {
    let Some(python) = python("an_environment_like_condas") else { return };
    let place = Place::new();
    let words = "import os, sys, sysconfig as s; \
                 print(os.path.realpath(sys.executable), s.get_path('stdlib'), s.get_path('purelib'), 'python%d.%d' % sys.version_info[:2], sep='\\n')";
    let said = place.command(&python).args(["-c", words]).output().expect("Python starts");
    let said = stdout(&said);
    let [executable, library, packages, name] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    let prefix = place.path("prefix");
    let inside = prefix.join("lib").join(name);
    std::fs::create_dir_all(prefix.join("bin")).expect("a folder");
    std::fs::create_dir_all(&inside).expect("a folder");
    std::fs::copy(executable, prefix.join("bin/python")).expect("a copy");
    for entry in std::fs::read_dir(library).expect("the library of Python") {
        let entry = entry.expect("a file").path();
        let file = entry.file_name().expect("a name");
        if file != "site-packages" && file != "dist-packages" {
            std::os::unix::fs::symlink(&entry, inside.join(file)).expect("a link");
        }
    }
    std::os::unix::fs::symlink(packages, inside.join("site-packages")).expect("a link");
    let run = recorded(&place, &prefix.join("bin/python"), |command| {
        command.arg(program("small.py"));
    });
    assert_eq!((stdout(&run.output).as_str(), stderr(&run.output).as_str()), ("trained 90300\n", ""));
    assert!(run.paths_of(7 * 300 * 4).contains("Net/layer"));
    assert!(run.has_gradient("layer.bias.grad", 300 * 4));
}

#[test]
fn the_shim_can_be_kept_out() {
    let Some(python) = python("the_shim_can_be_kept_out") else { return };
    let place = Place::new();
    let run = recorded(&place, &python, |command| {
        command.arg(program("small.py")).env("MEMSCOPE_SHIM", "0");
    });
    assert_eq!(stdout(&run.output), "trained 90300\n");
    let paths = run.paths_of(7 * 300 * 4);
    assert_eq!(paths.into_iter().collect::<Vec<_>>(), [""], "tensors are recorded, modules are not");
}

/// No PyTorch, half a PyTorch, and one that is something else: the program's own affair.
#[test]
fn what_is_no_pytorch() {
    let Some(python) = python("what_is_no_pytorch") else { return };
    let place = Place::new();
    for (name, text) in [
        ("nothing", None),
        ("half", Some("from torch import part\nTensor = int")),
        ("other", Some("import torch.part\nname = 'other'")),
        ("wrong", Some("import torch.part\nraise KeyError(__spec__.__class__)")),
    ] {
        let folder = place.path(name).join("torch");
        std::fs::create_dir_all(&folder).expect("a folder");
        if let Some(text) = text {
            std::fs::write(folder.join("part.py"), "").expect("a file");
            std::fs::write(folder.join("__init__.py"), text).expect("a file");
        }
        let program = "import sys; sys.path.insert(0, sys.argv[1])\n\
                       import torch; print(type(torch), sorted(vars(torch)), type(torch.__spec__)); import torch.nn";
        let mut command = place.command(&python);
        let arguments = ["-S", "-c", program, name];
        let alone = command.args(arguments).output().expect("Python starts");
        let mut command = place.memscope();
        command.args(["run", "-q", "-f", "-o", "p.mscope", "--"]).arg(&python).args(arguments);
        let under = command.output().expect("memscope starts");
        assert!(stderr(&alone).contains("Error"), "{}", stderr(&alone));
        assert_eq!(stdout(&alone), stdout(&under));
        // The process leaves no log, or one without a tensor.
        let words = stderr(&under);
        assert!(words.starts_with(&stderr(&alone)), "{}\n{words}", stderr(&alone));
        assert_eq!(alone.status, under.status);
    }
}

/// A PyTorch whose allocators have other names than those that are known: the program runs, and the report says what is not seen.
#[test]
fn a_pytorch_without_the_known_functions() {
    let Some(python) = python("a_pytorch_without_the_known_functions") else { return };
    let place = Place::new();
    let folder = place.path("later/torch");
    std::fs::create_dir_all(&folder).expect("a folder");
    // What the shim reads before it installs anything, and a library of PyTorch's name without a function.
    let text = "import ctypes, os, torch.part\n__version__ = '9.9.0'\nclass Tensor:\n def data_ptr(self): return 0\n\
                class _C:\n class DisableTorchFunction: pass\n\
                ctypes.CDLL(os.path.join(os.path.dirname(__file__), 'libc10.so'))";
    std::fs::write(folder.join("part.py"), "").expect("a file");
    std::fs::write(folder.join("__init__.py"), text).expect("a file");
    std::fs::write(place.path("none.c"), "int memscope_test_none;\n").expect("a file");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-Wl,-soname,libc10.so", "-o"]).arg(folder.join("libc10.so")).arg(place.path("none.c"));
    assert!(compiler.status().expect("cc starts").success());
    let program =
        "import sys; sys.path.insert(0, 'later'); import torch; print('trains with', torch.__version__); sys.exit(3)";
    let mut command = place.memscope();
    command.args(["run", "-q", "-f", "-o", "p.mscope", "--json", "p.json", "--"]).arg(&python);
    let output = command.args(["-S", "-c", program]).output().expect("memscope starts");
    assert_eq!(
        (stdout(&output).as_str(), output.status.code()),
        ("trains with 9.9.0\n", Some(3)),
        "{}",
        stderr(&output)
    );
    let report = std::fs::read_to_string(place.path("p.json")).expect("a report");
    assert!(report.contains("PyTorch 9.9.0 lacks functions through which memscope sees tensors"), "{report}");
}

/// Programs that end before they have PyTorch, with memscope's report: their output is Python's own, and the report says why there
/// is nothing in it.
#[test]
fn what_ends_before_pytorch_is_there() {
    let Some(python) = python("what_ends_before_pytorch_is_there") else { return };
    let place = Place::new();
    // A torch that fails half-way, in a part of its own that it imports: as with a library that is missing.
    std::fs::create_dir_all(place.path("half/torch/nn")).expect("a folder");
    let half = [
        ("torch/__init__.py", "import os\nfrom torch import nn\nfrom torch import _C\n"),
        ("torch/nn/__init__.py", "class Module: pass\n"),
        ("torch/_C.py", "raise ImportError('libcudart.so.13: cannot open shared object file')\n"),
    ];
    for (path, text) in half {
        std::fs::write(place.path("half").join(path), text).expect("a file");
    }
    let with_half = "import sys; sys.path.insert(0, 'half'); import torch";
    let starts: [(&[&str], i32, &str); 3] = [
        (&["no_such_script.py"], 2, "No such file or directory"),
        (&["-S", "-c", "import torch"], 1, "ModuleNotFoundError: No module named 'torch'"),
        (&["-S", "-c", with_half], 1, "ImportError: libcudart.so.13: cannot open shared object file"),
    ];
    for device in [None, Some("h100-80gb")] {
        for (arguments, status, words) in starts {
            let alone = place.command(&python).args(arguments).output().expect("Python starts");
            let mut command = place.memscope();
            command.args(["run", "-f", "-o", "p.mscope"]);
            command.args(device.iter().flat_map(|device| ["--device", device]));
            let under = command.arg("--").arg(&python).args(arguments).output().expect("memscope starts");
            assert_eq!(alone.status.code(), Some(status), "{arguments:?}");
            assert_eq!((under.status.code(), stdout(&under)), (Some(status), stdout(&alone)), "{arguments:?}");
            let (alone, under) = (stderr(&alone), stderr(&under));
            assert!(alone.contains(words) && under.contains(&alone), "{arguments:?}: {alone}\n{under}");
            let own = under.replacen(&alone, "", 1);
            assert!(own.contains(&format!("exit status {status}")), "{arguments:?}: {own}");
            assert!(own.contains("[nothing_captured]") && own.contains("memscope doctor"), "{arguments:?}: {own}");
            assert!(!own.contains("shim"), "{arguments:?}: {own}");
        }
    }
}
