# The checks, as CI runs them.
check:
    bash .ci/run

# Build and run the demo.
demo:
    cargo run --release -- demo

# Speed and memory goals, with their tables.
bench:
    bash benches/run
