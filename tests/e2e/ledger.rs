//! Bytes that only the simulator knows come out of the ledger exactly: the context's, a foreign process's, the firmware's.

use memscope_wire::env as names;

use crate::memscope::{Place, number, stderr};

const MIB: u64 = 1 << 20;

#[test]
fn injected_bytes_are_recovered_exactly() {
    let place = Place::new();
    let program = place.compile_linked("hold");
    for (context, foreign, firmware) in
        [(0, 0, 0), (301 * MIB, 0, 0), (0, 777 * MIB, 0), (301 * MIB, 777 * MIB, 123 * MIB)]
    {
        let mut command = place.memscope();
        command.args(["run", "-q", "-f", "-o", "p", "--json", "r.json", "--device", "8GiB", "--interval", "20", "--"]);
        command.arg(&program).arg("600");
        command.env(names::SIMULATOR_CONTEXT_BYTES, context.to_string());
        command.env(names::SIMULATOR_FOREIGN_BYTES, foreign.to_string());
        command.env(names::SIMULATOR_RESERVED_BYTES, firmware.to_string());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let report = serde_json::from_slice(&std::fs::read(place.path("r.json")).unwrap()).unwrap();

        assert_eq!(number(&report, "/devices/0/capacity"), 8 << 30);
        assert_eq!(number(&report, "/devices/0/peak/live/bytes"), 67 * MIB);
        assert_eq!(number(&report, "/devices/0/peak/reserved/bytes"), 67 * MIB);
        let ledger = "/devices/0/ledger_at_peak/device";
        assert_eq!(number(&report, &format!("{ledger}/reserved")), 67 * MIB);
        assert_eq!(number(&report, &format!("{ledger}/unexplained")), context);
        assert_eq!(number(&report, &format!("{ledger}/this_process")), 67 * MIB + context);
        assert_eq!(number(&report, &format!("{ledger}/other_processes")), foreign);
        assert_eq!(number(&report, &format!("{ledger}/firmware_reserved")), firmware);
        assert_eq!(number(&report, &format!("{ledger}/unowned")), 0);
        let used = 67 * MIB + context + foreign + firmware;
        assert_eq!(number(&report, "/devices/0/peak/device_used/bytes"), used);
        assert_eq!(number(&report, "/host/peak/bytes"), 5 * MIB);
    }
}
