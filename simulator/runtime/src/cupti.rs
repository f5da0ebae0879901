//! CUPTI: a profiler that sees nothing. Activities are taken and none is ever delivered.

use crate::api::{Out, store};
use crate::status::CuptiResult;
use crate::version;
use std::ffi::{c_char, c_int, c_uint, c_void};

api! {
    simulated fn cuptiGetVersion(number: Out<'_, c_uint>) -> CuptiResult {
        store(number, if version::is_twelve() { 26 } else { 130_200 });
        Ok(())
    }
    no_op fn cuptiSubscribe(subscriber: Out<'_, usize>, _callback: *const c_void, _data: *mut c_void) -> CuptiResult {
        store(subscriber, 1);
        Ok(())
    }
    no_op fn cuptiUnsubscribe() -> CuptiResult { Ok(()) }
    no_op fn cuptiEnableCallback() -> CuptiResult { Ok(()) }
    no_op fn cuptiEnableDomain() -> CuptiResult { Ok(()) }
    no_op fn cuptiFinalize() -> CuptiResult { Ok(()) }
    no_op fn cuptiActivityEnable() -> CuptiResult { Ok(()) }
    no_op fn cuptiActivityDisable() -> CuptiResult { Ok(()) }
    no_op fn cuptiActivityEnableCudaEventDeviceTimestamps() -> CuptiResult { Ok(()) }
    no_op fn cuptiActivityEnableDriverApi() -> CuptiResult { Ok(()) }
    no_op fn cuptiActivityEnableRuntimeApi() -> CuptiResult { Ok(()) }
    no_op fn cuptiActivityFlushAll() -> CuptiResult { Ok(()) }
    no_op fn cuptiActivityRegisterCallbacks() -> CuptiResult { Ok(()) }
    no_op fn cuptiActivityRegisterTimestampCallback() -> CuptiResult { Ok(()) }
    no_op fn cuptiActivitySetAttribute() -> CuptiResult { Ok(()) }
    simulated fn cuptiActivityGetNextRecord() -> CuptiResult { Err(CuptiResult::MAX_LIMIT_REACHED) }
    simulated fn cuptiActivityGetNumDroppedRecords(
        _context: *mut c_void, _stream: c_uint, count: Out<'_, usize>,
    ) -> CuptiResult {
        store(count, 0);
        Ok(())
    }
    no_op fn cuptiActivityPushExternalCorrelationId() -> CuptiResult { Ok(()) }
    no_op fn cuptiActivityPopExternalCorrelationId(_kind: c_int, id: Out<'_, u64>) -> CuptiResult {
        store(id, 0);
        Ok(())
    }
    simulated fn cuptiGetResultString(result: c_int, text: Out<'_, *const c_char>) -> CuptiResult {
        let name = if result == 0 { c"CUPTI_SUCCESS" } else { c"CUPTI_ERROR_NOT_SUPPORTED (not simulated by memscope)" };
        store(text, name.as_ptr());
        Ok(())
    }
    simulated fn cuptiGetCallbackName(_domain: c_int, _number: c_uint, text: Out<'_, *const c_char>) -> CuptiResult {
        store(text, c"".as_ptr());
        Ok(())
    }
    simulated fn cuptiGetTimestamp(nanoseconds: Out<'_, u64>) -> CuptiResult {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        store(nanoseconds, since.as_nanos() as u64);
        Ok(())
    }
}
