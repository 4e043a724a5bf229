//! `tutti forge setup` and `check` against the simulator.
