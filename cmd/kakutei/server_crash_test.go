package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// server is a PostgreSQL server of one test's own, which may be killed.
type server struct {
	t   *testing.T
	url string
	log string // its log file; the data lies beside it
}

// ownServer starts one, as `make test` does for all tests. It is gone when the test ends.
func ownServer(t *testing.T) server {
	t.Helper()
	said := kept(t, withoutKakutei(os.Environ()), "../../.ci/with-postgres",
		"KAKUTEI_TEST_DATABASE_URL", "KAKUTEI_TEST_POSTGRES_LOG")
	return server{t: t, url: said[0], log: said[1]}
}

// kept has one of the scripts that run a command beside something keep it for a test, and returns what the command finds
// in these variables. The end of its stdin ends it, also when the tests die: a signal on top of that could hit the script
// while it tidies up.
func kept(t *testing.T, env []string, script string, variables ...string) []string {
	t.Helper()
	c := exec.CommandContext(context.WithoutCancel(t.Context()), script, "bash", "-c",
		`for name in "$@"; do echo "${!name}"; done; cat >/dev/null`, "bash")
	c.Args = append(c.Args, variables...)
	c.Env, c.Stderr = env, os.Stderr
	stdin, err := c.StdinPipe()
	require.NoError(t, err)
	stdout, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = c.Wait()
	})
	said, lines := make([]string, len(variables)), bufio.NewReader(stdout)
	for i := range said {
		line, err := lines.ReadString('\n')
		require.NoError(t, err, "%s does not start what it should", script)
		said[i] = strings.TrimSpace(line)
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	return said
}

func (s server) data() string { return filepath.Join(filepath.Dir(s.log), "data") }

// crash kills the server and all its processes at once: nothing is flushed, nobody is told. The server says of most of them
// only that they are there, and one that waits in a dead server's memory, before it is listed, would never end.
func (s server) crash() {
	s.t.Helper()
	postmaster := s.postmaster()
	require.NoError(s.t, syscall.Kill(postmaster, syscall.SIGSTOP)) // it begins no more of them
	others := descendants(postmaster)
	assert.NotEmpty(s.t, others)
	for _, pid := range append(others, postmaster) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
	}
}

func (s server) postmaster() int {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	require.NoError(s.t, err)
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	require.NoError(s.t, err)
	return pid
}

// descendants are the processes that a process has begun, and they. Linux tells of each its children, other systems of each its
// parent.
func descendants(of int) (pids []int) {
	var children []string
	if files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of)); len(files) > 0 {
		for _, file := range files {
			text, _ := os.ReadFile(file)
			children = append(children, strings.Fields(string(text))...)
		}
	} else {
		list, _ := exec.Command("ps", "-A", "-o", "ppid=,pid=").Output() //nolint:noctx // it lists and ends
		for line := range strings.Lines(string(list)) {
			if fields := strings.Fields(line); len(fields) == 2 && fields[0] == strconv.Itoa(of) {
				children = append(children, fields[1])
			}
		}
	}
	for _, child := range children {
		if pid, err := strconv.Atoi(child); err == nil {
			pids = append(append(pids, pid), descendants(pid)...)
		}
	}
	return pids
}

// restart starts the server as it was started before, and returns when it answers: it has recovered then.
func (s server) restart() {
	s.t.Helper()
	late := time.Now().Add(patience)
	for time.Now().Before(late) {
		ended := s.begin()
		for {
			if c, err := pgx.Connect(s.t.Context(), s.url); err == nil {
				_ = c.Close(s.t.Context())
				return
			}
			select {
			case <-ended: // processes of the dead one were still there
			case <-time.After(10 * time.Millisecond):
				continue
			}
			break
		}
	}
	log, _ := os.ReadFile(s.log)
	require.FailNow(s.t, "the server does not start again", string(log))
}

// begin starts the server's program by the command that the last one has noted. The channel is closed when it ends.
func (s server) begin() <-chan struct{} {
	s.t.Helper()
	noted, err := os.ReadFile(filepath.Join(s.data(), "postmaster.opts"))
	require.NoError(s.t, err)
	program, rest, _ := strings.Cut(strings.TrimSpace(string(noted)), " ")
	var args []string
	for _, quoted := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(rest, -1) {
		args = append(args, quoted[1])
	}
	log, err := os.OpenFile(s.log, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(s.t, err)
	defer func() { _ = log.Close() }()
	c := exec.Command(program, args...) //nolint:noctx // .ci/with-postgres stops it
	c.Dir, c.Stdout, c.Stderr = "/", log, log
	if os.Geteuid() == 0 { // which it refuses to run as
		info, err := os.Stat(s.data())
		require.NoError(s.t, err)
		owner, ok := info.Sys().(*syscall.Stat_t)
		require.True(s.t, ok)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	}
	require.NoError(s.t, c.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait()
	}()
	return ended
}

// The whole server dies under load, again and again: what was acknowledged is there afterwards, and nothing is there twice.
func TestADatabaseServerThatIsKilledUnderLoadLosesNothing(t *testing.T) {
	s := ownServer(t)
	g := groundOn(t, s.url)
	g.log = s.log
	r := serving(t, g.env)
	var away []time.Duration
	payments := r.underLoad(func() {
		repeatedly(time.Second, 3*time.Second+500*time.Millisecond, func() {
			s.crash()
			began := time.Now()
			s.restart()
			away = append(away, time.Since(began).Round(time.Millisecond))
		})
	})
	assert.NotEmpty(t, away)
	t.Logf("%d payments while the server was killed; it was away for %v", len(payments), away)
	g.whole(r, payments...)
	r.stop()
}
