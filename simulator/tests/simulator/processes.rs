//! Accounting between processes.

use crate::session::{Session, inside, on_simulator, test_name};
use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaContext, result};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// More than half of the device of the race, in bytes.
const LARGER_HALF: usize = (8 << 20) + 512;

/// A child that runs one of the programs below, with pipes to it.
fn start(session: &Session, program: &str) -> Child {
    let mut command = session.child(&test_name(module_path!(), program));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Waits for the line that says `word`, and returns what follows on it.
fn told(child: &mut Child, word: &str) -> String {
    let output = child.stdout.as_mut().unwrap();
    for line in BufReader::new(output).lines() {
        if let Some((_, rest)) = line.unwrap().split_once(word) {
            return rest.trim().to_owned();
        }
    }
    panic!("the child ended without a word of {word:?}");
}

fn let_go(child: &mut Child) {
    child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
}

fn wait_for_parent() {
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// A program: holds 64 MiB of device 0 until it is let go.
#[test]
#[ignore = "a program that other tests start"]
fn holds_memory() {
    if inside() {
        let _context = CudaContext::new(0).unwrap();
        // SAFETY: nothing is written to the memory.
        unsafe { result::malloc_sync(64 << 20).unwrap() };
        println!("\nholding");
        wait_for_parent();
    }
}

/// A program: when let go, allocates more than half of device 0 again and again. Whoever succeeds must be alone: it holds
/// a file meanwhile, which no other may find free. Says how often it succeeded.
#[test]
#[ignore = "a program that other tests start"]
fn contends() {
    if inside() {
        let _context = CudaContext::new(0).unwrap();
        let held = PathBuf::from(std::env::var_os("MEMSCOPE_SIMULATOR_STATE").unwrap()).with_file_name("held");
        println!("\nready");
        wait_for_parent();
        let mut successes = 0;
        for _ in 0..5000 {
            // SAFETY: nothing is written to the memory, and it is freed once.
            let Ok(memory) = (unsafe { result::malloc_sync(LARGER_HALF) }) else { continue };
            std::fs::File::create_new(&held).expect("no other process holds more than half of the device");
            std::fs::remove_file(&held).unwrap();
            // SAFETY: see above.
            unsafe { result::free_sync(memory).unwrap() };
            successes += 1;
        }
        println!("succeeded {successes}");
    }
}

/// A program: says how many bytes of device 0 are in use.
#[test]
#[ignore = "a program that other tests start"]
fn says_what_is_used() {
    if inside() {
        let _context = CudaContext::new(0).unwrap();
        let (free, total) = result::mem_get_info().unwrap();
        println!("\nin use: {}", total - free);
    }
}

#[test]
fn a_killed_process_gives_its_memory_back() {
    let session = Session::new("134217728").with("MEMSCOPE_SIMULATOR_CONTEXT_BYTES", "1000");
    let used = || {
        let said = session.child(&test_name(module_path!(), "says_what_is_used")).output().unwrap().stdout;
        let said = String::from_utf8(said).unwrap();
        said.lines().find_map(|line| line.strip_prefix("in use: ")?.parse::<u64>().ok()).unwrap()
    };
    let mut child = start(&session, "holds_memory");
    told(&mut child, "holding");
    assert_eq!(used(), (64 << 20) + 2000, "the child's memory and two contexts");
    child.kill().unwrap();
    // Not reaped yet: a dead process holds nothing, even as a zombie. Death itself may take a moment.
    let swept = (0..1000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        used() == 1000
    });
    assert!(swept);
    child.wait().unwrap();
}

#[test]
fn racing_processes_never_get_more_than_there_is() {
    let session = Session::new("16777216");
    let mut children: Vec<Child> = (0..4).map(|_| start(&session, "contends")).collect();
    children.iter_mut().for_each(|child| drop(told(child, "ready")));
    children.iter_mut().for_each(let_go);
    let successes = children.iter_mut().map(|child| told(child, "succeeded").parse::<u32>().unwrap());
    assert!(successes.sum::<u32>() > 0);
    for child in &mut children {
        child.wait().unwrap();
    }
}

on_simulator! {
    fn a_forked_child_cannot_use_cuda on "1073741824" {
        result::init().unwrap();
        let _context = CudaContext::new(0).unwrap();
        // SAFETY: the child calls the driver, which refuses, and leaves.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let refused = result::init().is_err_and(|error| error.0 == CUresult::CUDA_ERROR_NOT_INITIALIZED);
            // SAFETY: _exit has no preconditions.
            unsafe { libc::_exit(i32::from(!refused)) };
        }
        let mut status = 1;
        // SAFETY: waits for the child made above.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(status, 0);
        result::mem_get_info().unwrap();
    }

    fn a_program_sees_the_devices_it_is_allowed_to on "h100-80gb*4" with "CUDA_VISIBLE_DEVICES" = "3,GPU-6d656d73-636f-8065-8000-000000000001,9,0" {
        result::init().unwrap();
        assert_eq!(result::device::get_count().unwrap(), 2);
        let contexts = [CudaContext::new(0).unwrap(), CudaContext::new(1).unwrap()];
        assert_eq!(contexts.map(|context| context.uuid().unwrap().bytes[15]), [3, 1]);
    }

    fn without_a_visible_device_there_is_none on "h100-80gb" with "CUDA_VISIBLE_DEVICES" = "" {
        assert_eq!(result::init().unwrap_err().0, CUresult::CUDA_ERROR_NO_DEVICE);
    }
}
