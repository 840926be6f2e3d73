package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// durable are PostgreSQL's settings for the measurements: every commit is flushed, as in production. What comes by from
// time to time is kept out, so that it falls into no cell's window and not into another's; VACUUM comes between them.
var durable = []string{
	"fsync=on", "synchronous_commit=on", "full_page_writes=on",
	"checkpoint_timeout=1d", "max_wal_size=40GB", "autovacuum=off",
	"max_connections=200", "timezone=UTC", "unix_socket_directories=",
}

// postgres is a server of the bench's own, on the loopback interface.
type postgres struct {
	programs string // where initdb, postgres and pgbench are
	dir      string
	port     string
	owner    *syscall.Credential
	server   *exec.Cmd
	ended    chan struct{}
	huge     hugePages
}

// startPostgres starts a server with its files below dir, which is on a disk.
func startPostgres(ctx context.Context, programs, dir string) (*postgres, error) {
	p := &postgres{programs: programs, dir: filepath.Join(dir, "postgres"), ended: make(chan struct{})}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return nil, err
	}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

func (p *postgres) start(ctx context.Context) error {
	if err := p.giveAway(); err != nil {
		return err
	}
	var err error
	if p.port, err = freePort(); err != nil {
		return err
	}
	data := filepath.Join(p.dir, "data")
	made, err := p.program("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C").CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, made)
	}
	arguments := []string{"-D", data, "-p", p.port, "-h", "127.0.0.1"}
	shared := quarterOfMemory()
	p.huge.allow(shared)
	for _, setting := range append(durable, fmt.Sprintf("shared_buffers=%dMB", shared)) {
		arguments = append(arguments, "-c", setting)
	}
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		return err
	}
	server := p.program("postgres", arguments...)
	server.Stdout, server.Stderr = log, log
	if err := errors.Join(server.Start(), log.Close()); err != nil {
		return err
	}
	p.server = server
	go func() {
		_ = server.Wait()
		close(p.ended)
	}()
	return p.await(ctx)
}

// giveAway gives the directory to a user who may run PostgreSQL: root may not.
func (p *postgres) giveAway() error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return err
	}
	p.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	// He may go through the bench's directory, and read nothing in it.
	return errors.Join(os.Chown(p.dir, int(uid), int(gid)), os.Chmod(filepath.Dir(p.dir), 0o711))
}

// await waits until the server answers.
func (p *postgres) await(ctx context.Context) (err error) {
	for range 600 {
		if err = p.run(ctx, "postgres", "SELECT 1"); err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("PostgreSQL does not come up: %w", err)
}

// stop ends the server. Nothing of it shall stay.
func (p *postgres) stop() error {
	if p.server != nil {
		_ = p.server.Process.Signal(syscall.SIGQUIT)
		<-p.ended
	}
	return errors.Join(p.huge.disallow(), os.RemoveAll(p.dir))
}

// program is one of PostgreSQL's, as the user who owns the server. It ends with the bench.
func (p *postgres) program(name string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.programs, name), arguments...)
	cmd.Dir = p.dir
	cmd.Env = []string{"LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.owner, Pdeathsig: syscall.SIGQUIT, Setpgid: true}
	return cmd
}

func (p *postgres) url(database string) string {
	return "postgres://postgres@127.0.0.1:" + p.port + "/" + database + "?sslmode=disable"
}

// database makes an empty database and a connection to it.
func (p *postgres) database(ctx context.Context, name string) (*database, error) {
	if err := p.run(ctx, "postgres", "CREATE DATABASE "+name); err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, p.url(name))
	if err != nil {
		return nil, err
	}
	return &database{conn: conn, url: p.url(name), name: name}, nil
}

// drop ends a database, whoever is still connected.
func (p *postgres) drop(ctx context.Context, d *database) error {
	return errors.Join(d.conn.Close(ctx), p.run(ctx, "postgres", "DROP DATABASE "+d.name+" WITH (FORCE)"))
}

func (p *postgres) run(ctx context.Context, database, sql string) error {
	conn, err := pgx.Connect(ctx, p.url(database))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

func (p *postgres) version(ctx context.Context) (v string, err error) {
	conn, err := pgx.Connect(ctx, p.url("postgres"))
	if err != nil {
		return "", err
	}
	err = conn.QueryRow(ctx, "SHOW server_version").Scan(&v)
	v, _, _ = strings.Cut(v, " ")
	return v, errors.Join(err, conn.Close(ctx))
}

// quarterOfMemory is the usual size for shared_buffers, in megabytes.
func quarterOfMemory() uint64 {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return 512
	}
	return max(info.Totalram*uint64(info.Unit)/4>>20, 128)
}

// hugePages are allowed for a server's shared memory while it runs, if the bench may do so. In pages of 4 kB each session
// meets each page of a large table anew, which costs more than to look up what is on it.
type hugePages struct{ allowed int }

// pagesAtMost is how many more than those that are reserved the kernel gives to who asks for them, and takes back when he ends.
const pagesAtMost = "/proc/sys/vm/nr_overcommit_hugepages"

// allow has the kernel give so many megabytes in pages of 2 MB, and a tenth more for what else a server shares.
func (h *hugePages) allow(megabytes uint64) {
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil || !isTwoMegabytes.Match(memory) {
		return
	}
	if more := int(megabytes*11/10/2) + 1; h.add(more) == nil { //nolint:gosec // of this machine's memory
		h.allowed = more
	}
}

var isTwoMegabytes = regexp.MustCompile(`(?m)^Hugepagesize:\s+2048 kB$`)

// add changes the limit, which others may have changed meanwhile.
func (h *hugePages) add(more int) error {
	text, err := os.ReadFile(pagesAtMost)
	if err != nil {
		return err
	}
	atMost, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	return os.WriteFile(pagesAtMost, strconv.AppendInt(nil, int64(max(0, atMost+more)), 10), 0o600)
}

func (h *hugePages) disallow() error {
	if h.allowed == 0 {
		return nil
	}
	err := h.add(-h.allowed)
	h.allowed = 0
	return err
}

// pages says which ones the server has taken: it asks for huge ones, and does without.
func (p *postgres) pages() string {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.server.Process.Pid))
	if err == nil && hasHugePages.Match(status) {
		return "huge pages"
	}
	return "no huge pages"
}

var hasHugePages = regexp.MustCompile(`(?m)^HugetlbPages:\s+[1-9]\d* kB$`)

// freePort is one on which nobody listens at this moment.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// inMemory is the mark of file systems without a disk (statfs: TMPFS_MAGIC).
const inMemory = 0x01021994

// directory is a new one on a disk: a flush to memory costs nothing.
func directory() (string, error) {
	for _, place := range []string{os.TempDir(), "/var/tmp"} {
		var of syscall.Statfs_t
		if err := syscall.Statfs(place, &of); err == nil && of.Type != inMemory {
			return os.MkdirTemp(place, "kakutei-bench-")
		}
	}
	return "", errors.New("neither TMPDIR nor /var/tmp is on a disk")
}
