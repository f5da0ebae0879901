// Allocations in functions of a Rust program, for stacks of machine code. The places of the calls are named by comments.

use std::hint::black_box;

#[link(name = "cuda")]
unsafe extern "C" {
    fn cuInit(flags: u32) -> i32;
    fn cuDevicePrimaryCtxRetain(context: *mut *mut u8, device: i32) -> i32;
    fn cuCtxSetCurrent(context: *mut u8) -> i32;
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> i32;
}

#[inline(always)]
fn take(bytes: usize) -> u64 {
    let mut address = 0;
    // SAFETY: the driver writes one address.
    let result = unsafe { cuMemAlloc_v2(&mut address, bytes) }; // place: take
    assert_eq!(result, 0);
    address
}

struct Layer(Vec<u64>);

impl Layer {
    #[inline(never)]
    fn forward(&mut self, bytes: usize) {
        self.0.push(take(bytes)); // place: forward
        black_box(&self.0);
    }
}

#[inline(never)]
fn train(steps: usize) -> usize {
    let mut layer = Layer(Vec::new());
    (0..steps).for_each(|_| layer.forward(black_box(1 << 20))); // place: train
    layer.0.len()
}

fn main() {
    let mut context = std::ptr::null_mut();
    // SAFETY: as the driver's documentation says.
    let results = unsafe { [cuInit(0), cuDevicePrimaryCtxRetain(&mut context, 0), cuCtxSetCurrent(context)] };
    assert_eq!(results, [0; 3]);
    assert_eq!(black_box(train(3)), 3); // place: main
}
