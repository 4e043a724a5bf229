//! Limits how many children run at once, and reuses idle ones.

use parking_lot::{Condvar, Mutex};

/// Shared by threads: each uses a child of its own, and blocks while all slots are used.
#[derive(Debug)]
pub struct Pool<C> {
    most: usize,
    children: Mutex<Children<C>>,
    returned: Condvar,
}

#[derive(Debug)]
struct Children<C> {
    idle: Vec<C>,
    taken: usize,
}

/// A slot; dropping it returns the slot and the child in it.
#[derive(Debug)]
pub struct Place<'a, C> {
    pool: &'a Pool<C>,
    pub child: Option<C>,
}

impl<C> Pool<C> {
    pub fn new(most: usize) -> Self {
        let children = Children { idle: Vec::new(), taken: 0 };
        Self { most: most.max(1), children: Mutex::new(children), returned: Condvar::new() }
    }

    /// Blocks until a slot is free. It holds an idle child, if there is one.
    pub fn place(&self) -> Place<'_, C> {
        let mut children = self.children.lock();
        while children.taken >= self.most {
            self.returned.wait(&mut children);
        }
        children.taken += 1;
        let child = children.idle.pop();
        drop(children);
        Place { pool: self, child }
    }
}

impl<C> Drop for Place<'_, C> {
    fn drop(&mut self) {
        let mut children = self.pool.children.lock();
        children.taken -= 1;
        children.idle.extend(self.child.take());
        drop(children);
        self.pool.returned.notify_one();
    }
}
