//! Limits how many children run at once, and reuses idle ones.

use parking_lot::{Condvar, Mutex};

/// Shared by threads: each uses a child of its own, and blocks while all slots are used.
#[derive(Debug)]
pub struct ChildPool<C> {
    capacity: usize,
    children: Mutex<PoolState<C>>,
    slot_freed: Condvar,
}

#[derive(Debug)]
struct PoolState<C> {
    idle: Vec<C>,
    used: usize,
}

/// A slot; dropping it returns the slot and the child in it.
#[derive(Debug)]
pub struct PoolSlot<'a, C> {
    pool: &'a ChildPool<C>,
    pub child: Option<C>,
}

impl<C> ChildPool<C> {
    pub fn new(most: usize) -> Self {
        let children = PoolState { idle: Vec::new(), used: 0 };
        Self { capacity: most.max(1), children: Mutex::new(children), slot_freed: Condvar::new() }
    }

    /// Blocks until a slot is free. It holds an idle child, if there is one.
    pub fn acquire(&self) -> PoolSlot<'_, C> {
        let mut children = self.children.lock();
        while children.used >= self.capacity {
            self.slot_freed.wait(&mut children);
        }
        children.used += 1;
        let child = children.idle.pop();
        drop(children);
        PoolSlot { pool: self, child }
    }
}

impl<C> Drop for PoolSlot<'_, C> {
    fn drop(&mut self) {
        let mut children = self.pool.children.lock();
        children.used -= 1;
        children.idle.extend(self.child.take());
        drop(children);
        self.pool.slot_freed.notify_one();
    }
}
