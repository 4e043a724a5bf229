//! The root file system of an image, as a container runtime gives it to a process.

/// A script for `unshare --mount sh -c`, with the root, then `NAME=VALUE…` and a command. The root is read-only, /tmp and /state are in
/// memory, and the environment of the machine is absent.
pub const RUN: &str = r#"set -e
root=$1; shift
mkdir -p "$root/proc" "$root/dev"
mount --bind "$root" "$root"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o "uid=65532,gid=65532,mode=700" tmpfs "$root/state"
mount -o remount,bind,ro "$root"
exec env -i "$@"
"#;
