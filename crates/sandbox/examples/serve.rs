//! Serves one embedded cluster until interrupted: `cargo run -p sandbox --example serve -- KUBECONFIG`.

use sandbox::{Sandbox, SandboxOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "sandbox.kubeconfig".to_owned());
    let sandbox = Sandbox::new(SandboxOptions::default());
    let listener = sandbox.listen(([127, 0, 0, 1], 0).into()).await?;
    std::fs::write(path, listener.kubeconfig())?;
    tokio::signal::ctrl_c().await?;
    Ok(())
}
