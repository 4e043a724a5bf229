//! Prints figures and checks goals. A missed goal fails the benchmark after all measurements.

use parking_lot::Mutex;

static MISSED: Mutex<Vec<String>> = Mutex::new(Vec::new());

pub fn figure(name: &str, value: f64, unit: &str) {
    println!("figure {name} {value:.2} {unit}");
}

/// A figure that shall be this at most.
pub fn at_most(name: &str, value: f64, unit: &str, most: f64) {
    figure(name, value, unit);
    goal(name, value, unit, most);
}

/// Prints the goal of a figure that was printed before, and records a miss.
pub fn goal(name: &str, value: f64, unit: &str, most: f64) {
    println!("goal {name} {most:.2} {unit}");
    // What is no number misses it too.
    if value.is_nan() || value > most {
        MISSED.lock().push(format!("{name} is {value:.2} {unit}, and shall be {most:.2} at most"));
    }
}

/// Fails when a goal was missed.
pub fn check() {
    let missed = std::mem::take(&mut *MISSED.lock());
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
