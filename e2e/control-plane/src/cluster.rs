//! A temporary control plane on loopback. Start at [`Cluster::start`], or in a test at
//! [`Cluster::shared`].

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::api::{Api, ApiError, Connections};
use crate::binaries::Binaries;
use crate::certificates;
use crate::etcd::{self, SpaceAlarm};
use crate::flags;
use crate::kubeconfig::{self, Token, Users};
use crate::port::HeldPort;
use crate::process_reaper::ProcessReaper;
use crate::program::Program;
use crate::running::Running;
use crate::temp_dir::{self, TempDir};

/// Ten times the longest start observed on a busy machine with two cores.
const READY_MAX: Duration = Duration::from_secs(120);
const STOP_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(25);

/// Options of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub audit: Audit,
    /// Appended to the standard flags; the last value of a flag counts.
    pub apiserver_flags: Vec<String>,
    /// Initial data of etcd, from [`Cluster::stop_and_save`] of another cluster. It is copied.
    pub data: Option<PathBuf>,
}

/// Whether kube-apiserver writes an audit log: see [`Cluster::audit_log`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Audit {
    #[default]
    Off,
    /// User, request, and time, without bodies.
    Metadata,
}

/// How to stop a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// SIGTERM: a graceful shutdown.
    Terminate,
    /// SIGKILL, as if its machine were lost.
    Kill,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot prepare a cluster: {0}")]
    Files(#[from] io::Error),
    #[error("cannot reach the cluster: {0}")]
    Api(#[from] ApiError),
    #[error("{program} ended: {status}\n{log}")]
    Ended { program: Program, status: ExitStatus, log: String },
    #[error("{program} is not ready after {} seconds\n{log}", READY_MAX.as_secs())]
    NotReady { program: Program, log: String },
    #[error("{program} runs already")]
    RunsAlready { program: Program },
}

/// etcd and kube-apiserver, and on demand kube-controller-manager. Drop stops them and removes all
/// their files; so does any end of the owning process.
pub struct Cluster {
    // Fields are dropped in this order: the reaper kills the programs, then they are waited for.
    reaper: ProcessReaper,
    programs: Mutex<Programs>,
    temp_dir: TempDir,
    binaries: Binaries,
    options: Options,
    url: String,
    authority: String,
    users: Users,
    api: Api,
    api_port: HeldPort,
    controller_manager_port: HeldPort,
}

#[derive(Default)]
struct Programs {
    etcd: Option<Running>,
    api_server: Option<Running>,
    controller_manager: Option<Running>,
}

impl Cluster {
    /// Returns when kube-apiserver is ready.
    pub fn start(binaries: &Binaries, options: Options) -> Result<Self, StartError> {
        let temp_dir = temp_dir::create(&env::temp_dir())?;
        let reaper = ProcessReaper::start(&temp_dir.path)?;
        let authority = certificates::create(&temp_dir.path)?;
        let users = Users::random()?;
        let api_port = HeldPort::reserve()?;
        let url = format!("https://127.0.0.1:{}", api_port.number());
        let cluster = Self {
            reaper,
            programs: Mutex::default(),
            binaries: binaries.clone(),
            options,
            api: Api::new(&url, &authority, users.admin.clone(), Connections::Closed)?,
            url,
            authority,
            users,
            api_port,
            controller_manager_port: HeldPort::reserve()?,
            temp_dir,
        };
        cluster.write_files()?;
        if let Some(data) = &cluster.options.data {
            copy_directory(data, &flags::etcd_data(cluster.directory()))?;
        }
        cluster.launch(Program::Etcd, &flags::etcd(cluster.directory()))?;
        cluster.start_apiserver()?;
        Ok(cluster)
    }

    /// The cluster that all tests of this process share, each with a namespace of its own.
    /// `None` means skip: see [`Binaries::for_test`].
    ///
    /// # Panics
    ///
    /// If the programs exist but do not start.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
        let start = || {
            let started = Self::start(&Binaries::for_test()?, Options::default());
            Some(started.unwrap_or_else(|error| panic!("cannot start the shared cluster: {error}")))
        };
        SHARED.get_or_init(start).as_ref()
    }

    /// The URL of kube-apiserver without a trailing slash.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Requests as the administrator.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// Requests as the administrator over reused connections, for tests that do not restart
    /// kube-apiserver.
    pub fn fast_api(&self) -> Result<Api, ApiError> {
        Api::new(&self.url, &self.authority, self.users.admin.clone(), Connections::Kept)
    }

    /// The administrator's kubeconfig file.
    pub fn kubeconfig(&self) -> PathBuf {
        self.file("admin.kubeconfig")
    }

    /// The directory of its files, among them a log per program. Removed with the cluster.
    pub fn directory(&self) -> &Path {
        &self.temp_dir.path
    }

    /// One JSON object per line, if [`Options::audit`] enables it.
    pub fn audit_log(&self) -> PathBuf {
        self.file(flags::AUDIT_LOG_FILE)
    }

    /// Creates a namespace whose name starts with `hint`, and returns the name.
    pub fn namespace(&self, hint: &str) -> Result<String, ApiError> {
        let wanted = json!({"metadata": {"generateName": format!("{hint}-")}});
        let created = self.api.create("/api/v1/namespaces", &wanted)?;
        Ok(text_at(&created["metadata"]["name"]))
    }

    /// Creates a ServiceAccount without permissions, and a kubeconfig file with its token.
    pub fn service_account(&self, namespace: &str, name: &str) -> Result<PathBuf, StartError> {
        let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        self.api.create(&accounts, &json!({"metadata": {"name": name}}))?;
        self.kubeconfig_of(namespace, name)
    }

    /// Writes a kubeconfig file with a token of an existing ServiceAccount.
    pub fn kubeconfig_of(&self, namespace: &str, account: &str) -> Result<PathBuf, StartError> {
        let tokens = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let request = json!({"spec": {"expirationSeconds": 24 * 60 * 60}});
        let answer = self.api.create(&tokens, &request)?;
        let token = Token::from_text(&text_at(&answer["status"]["token"]));
        let path = self.file(&format!("{namespace}-{account}.kubeconfig"));
        kubeconfig::write(&path, self.directory(), &self.url, &token)?;
        Ok(path)
    }

    /// Starts kube-apiserver again after [`Cluster::stop`], on the same port.
    pub fn start_apiserver(&self) -> Result<(), StartError> {
        let mut flags = flags::apiserver(self.directory(), self.api_port.number());
        match self.options.audit {
            Audit::Off => {}
            Audit::Metadata => flags.extend(flags::audit(self.directory())),
        }
        flags.extend(self.options.apiserver_flags.iter().cloned());
        self.launch(Program::ApiServer, &flags)?;
        self.wait_until_ready(Program::ApiServer, &self.api, "/readyz")
    }

    /// Runs kube-controller-manager with exactly these controllers, without leader election.
    pub fn start_controller_manager(
        &self,
        controllers: &[&str],
        more_flags: &[&str],
    ) -> Result<(), StartError> {
        self.launch_controller_manager(controllers, more_flags)?;
        self.wait_until_ready(Program::ControllerManager, &self.controller_manager()?, "/healthz")
    }

    /// Does not wait until it is ready, because health checks take CPU time.
    pub fn launch_controller_manager(
        &self,
        controllers: &[&str],
        more_flags: &[&str],
    ) -> Result<(), StartError> {
        let port = self.controller_manager_port.number();
        let kubeconfig = self.file("controller-manager.kubeconfig");
        let mut flags = flags::controller_manager(self.directory(), port, &kubeconfig, controllers);
        flags.extend(more_flags.iter().map(|&flag| flag.to_owned()));
        self.launch(Program::ControllerManager, &flags)
    }

    /// Requests to kube-controller-manager's own port: metrics and health.
    pub fn controller_manager(&self) -> Result<Api, ApiError> {
        let url = format!("https://127.0.0.1:{}", self.controller_manager_port.number());
        Api::new(&url, &self.authority, self.users.admin.clone(), Connections::Closed)
    }

    /// Stops a program and waits for its end. If it ignores SIGTERM, it is killed after a minute.
    pub fn stop(&self, program: Program, how: Stop) -> io::Result<()> {
        let Some(mut running) = self.programs().slot(program).take() else { return Ok(()) };
        match how {
            Stop::Terminate => running.signal(Signal::TERM)?,
            Stop::Kill => running.signal(Signal::KILL)?,
        }
        if !running.wait(STOP_MAX) {
            running.signal(Signal::KILL)?;
            running.wait(STOP_MAX);
        }
        Ok(())
    }

    /// Stops all programs and returns etcd's data directory, for [`Options::data`] of another
    /// cluster.
    pub fn stop_and_save(&self) -> io::Result<PathBuf> {
        for program in [Program::ControllerManager, Program::ApiServer, Program::Etcd] {
            self.stop(program, Stop::Terminate)?;
        }
        Ok(flags::etcd_data(self.directory()))
    }

    /// Copies the data of etcd, which is paused meanwhile: the copy is as after a crash.
    pub fn back_up(&self) -> io::Result<PathBuf> {
        let backup = self.file("etcd-backup");
        self.pause(Program::Etcd)?;
        let copied = copy_directory(&flags::etcd_data(self.directory()), &backup);
        self.resume(Program::Etcd)?;
        copied.map(|()| backup)
    }

    /// Kills kube-apiserver and etcd, and starts both with the data of [`Self::back_up`].
    pub fn restore(&self, backup: &Path) -> Result<(), StartError> {
        let data = flags::etcd_data(self.directory());
        self.stop(Program::ApiServer, Stop::Kill)?;
        self.stop(Program::Etcd, Stop::Kill)?;
        fs::remove_dir_all(&data)?;
        copy_directory(backup, &data)?;
        self.launch(Program::Etcd, &flags::etcd(self.directory()))?;
        self.start_apiserver()
    }

    /// The process id of a running program.
    pub fn pid(&self, program: Program) -> Option<u32> {
        self.programs().slot(program).as_ref().map(Running::pid)
    }

    /// Stops the execution of a program (SIGSTOP) until [`Cluster::resume`].
    pub fn pause(&self, program: Program) -> io::Result<()> {
        self.programs().slot(program).as_mut().map_or(Ok(()), Running::pause)
    }

    pub fn resume(&self, program: Program) -> io::Result<()> {
        let mut programs = self.programs();
        programs.slot(program).as_mut().map_or(Ok(()), |running| running.signal(Signal::CONT))
    }

    /// Makes etcd reject writes as if its disk quota were used up, or accept them again.
    pub fn set_space_alarm(&self, alarm: SpaceAlarm) -> io::Result<()> {
        etcd::set_space_alarm(self.directory(), alarm)
    }

    /// The first program that ended unexpectedly, and the end of its log.
    pub fn failed(&self) -> Option<StartError> {
        let mut programs = self.programs();
        Program::ALL.into_iter().find_map(|program| {
            let running = programs.slot(program).as_mut()?;
            let status = running.ended()?;
            Some(StartError::Ended { program, status, log: running.log_end() })
        })
    }

    /// Makes another program end with the cluster, even if the owner is killed.
    pub fn adopt<'a>(&self, program: &'a mut Command) -> &'a mut Command {
        self.reaper.adopt(program)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    fn write_files(&self) -> io::Result<()> {
        let Users { admin, controller_manager } = &self.users;
        fs::write(self.file(flags::TOKENS_FILE), self.users.token_file())?;
        fs::write(self.file(flags::AUDIT_POLICY_FILE), flags::AUDIT_POLICY)?;
        let write =
            |path: &Path, token| kubeconfig::write(path, self.directory(), &self.url, token);
        write(&self.kubeconfig(), admin)?;
        write(&self.file("controller-manager.kubeconfig"), controller_manager)
    }

    fn launch(&self, program: Program, flags: &[String]) -> Result<(), StartError> {
        let mut programs = self.programs();
        let slot = programs.slot(program);
        if slot.as_mut().is_some_and(|running| running.ended().is_none()) {
            return Err(StartError::RunsAlready { program });
        }
        let path = self.binaries.path(program);
        *slot = Some(Running::start(&self.reaper, self.directory(), &path, program, flags)?);
        Ok(())
    }

    fn wait_until_ready(&self, program: Program, api: &Api, path: &str) -> Result<(), StartError> {
        let started = Instant::now();
        while api.text(path).is_err() {
            if let Some(failed) = self.failed() {
                return Err(failed);
            }
            if started.elapsed() > READY_MAX {
                let log = self.programs().slot(program).as_ref().map(Running::log_end);
                return Err(StartError::NotReady { program, log: log.unwrap_or_default() });
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// A panic while the lock is held leaves the slots unchanged.
    fn programs(&self) -> MutexGuard<'_, Programs> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Programs {
    fn slot(&mut self, program: Program) -> &mut Option<Running> {
        match program {
            Program::Etcd => &mut self.etcd,
            Program::ApiServer => &mut self.api_server,
            Program::ControllerManager => &mut self.controller_manager,
        }
    }
}

fn copy_directory(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_directory(&entry.path(), &target)?,
            false => drop(fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}

fn text_at(value: &serde_json::Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
