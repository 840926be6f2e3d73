package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fileOf is the SQLite file at the URL.
func fileOf(url string) string { return strings.TrimPrefix(url, "sqlite:") }

// inTime is the longest that an answer takes in these tests, with slack: the gateway timeout of a second and five lock
// timeouts of 300 ms are half of it.
const inTime = 5 * time.Second

// becomesReady waits until the service says that it is ready, or not. It looks anew at least every two seconds.
func (r *running) becomesReady(ready bool) {
	r.t.Helper()
	want := map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[ready]
	assert.Eventually(r.t, func() bool {
		a, err := r.send(http.MethodGet, "/readyz", "", "")
		return err == nil && a.status == want
	}, inTime, 50*time.Millisecond, "ready: %t", ready)
}

// isRefused sends the request once and expects that nothing was done, in time.
func (p *insistence) isRefused(at *running) {
	at.t.Helper()
	began := time.Now()
	a, err := at.ask(at.t.Context(), p.path, p.key, p.body)
	require.NoError(at.t, err)
	assert.Equal(at.t, http.StatusServiceUnavailable, a.status, a.body)
	assert.Contains(at.t, a.body, `"code":"unavailable"`)
	assert.Less(at.t, time.Since(began), inTime)
}

// insistHere repeats the request at one instance until its answer is final.
func (p *insistence) insistHere(at *running) {
	at.t.Helper()
	require.NoError(at.t, p.insist(at.t.Context(), func() *running { return at }))
}

// onFile is the ground on a SQLite file, with short waits.
func onFile(t *testing.T, url string) ground {
	t.Helper()
	return groundOn(t, url).with("KAKUTEI_LOCK_TIMEOUT", "300ms")
}

// C83: a backup, a shell, another program: whoever holds the file keeps the service from writing, not from reading.
func TestAFileThatAnotherProcessHoldsIsUnavailableUntilItIsGivenBack(t *testing.T) {
	g := onFile(t, sqliteFile(t))
	i := g.start()
	p := paymentOf(i.placed("place-1"), "pay-1")
	i.becomesReady(true)
	outside, err := g.rows.Conn(t.Context())
	require.NoError(t, err)
	_, err = outside.ExecContext(t.Context(), `BEGIN IMMEDIATE`)
	require.NoError(t, err)

	p.isRefused(i.running)
	i.becomesReady(false)
	assert.Equal(t, http.StatusOK, i.get(p.order).status, "reading goes on")

	_, err = outside.ExecContext(t.Context(), `ROLLBACK`)
	require.NoError(t, err)
	require.NoError(t, outside.Close())
	i.becomesReady(true)
	p.insistHere(i.running)
	g.whole(i.running, p)
}

// ordinary has the program run as a user whom the file's mode binds: root reads and writes whatever it likes. The folder
// and what is in it become that user's.
func ordinary(t *testing.T, folder string) func(*exec.Cmd) {
	t.Helper()
	if os.Geteuid() != 0 {
		return func(*exec.Cmd) {}
	}
	const nobody = 65534
	require.NoError(t, os.Chmod(filepath.Dir(folder), 0o755))
	require.NoError(t, filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		return cmp.Or(err, os.Chown(path, nobody, nobody))
	}))
	return func(c *exec.Cmd) {
		c.Dir = "/"
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}

// A service that has opened the file keeps what it may do with it, as long as it needs no new connection to write. It is
// mended by the file's mode alone.
func TestAFileThatMayNotBeWrittenIsUnavailableUntilItMay(t *testing.T) {
	g := onFile(t, sqliteFile(t))
	file := fileOf(g.env["KAKUTEI_DATABASE_URL"])
	require.Equal(t, 0, alone(t, g.env, "migrate").code)
	asOrdinary := ordinary(t, filepath.Dir(file))
	i := g.start(asOrdinary)
	first, second := paymentOf(i.placed("place-1"), "pay-1"), paymentOf(i.placed("place-2"), "pay-2")
	outside, err := g.rows.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.Chmod(file, 0o444))
	first.insistHere(i.running)

	_, err = outside.ExecContext(t.Context(), `BEGIN IMMEDIATE`)
	require.NoError(t, err)
	second.isRefused(i.running) // and the connection that has waited in vain is not used again
	_, err = outside.ExecContext(t.Context(), `ROLLBACK`)
	require.NoError(t, err)
	require.NoError(t, outside.Close())
	second.isRefused(i.running)
	i.becomesReady(false)
	assert.Contains(t, i.stderr.String(), "the SQLite file may not be written")

	require.NoError(t, os.Chmod(file, 0o644))
	i.becomesReady(true)
	second.insistHere(i.running)
	g.whole(i.running, first, second)
}

// It leaves nothing beside the file that only a person could clear away.
func TestAFileThatMayNotBeWrittenEndsTheStartAtOnce(t *testing.T) {
	g := onFile(t, sqliteFile(t))
	file := fileOf(g.env["KAKUTEI_DATABASE_URL"])
	require.Equal(t, 0, alone(t, g.env, "migrate").code)
	asOrdinary := ordinary(t, filepath.Dir(file))
	require.NoError(t, os.Chmod(file, 0o444))
	path := binary(t)
	inTime, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	c := exec.CommandContext(inTime, path, "serve", "--listen", "127.0.0.1:0")
	c.Env = append(withoutKakutei(os.Environ()), "KAKUTEI_DATABASE_URL="+g.env["KAKUTEI_DATABASE_URL"])
	asOrdinary(c)
	said, err := c.CombinedOutput()
	require.Error(t, err)
	assert.Equal(t, 1, c.ProcessState.ExitCode())
	assert.Regexp(t, `\Akakutei: KAKUTEI_DATABASE_URL .+ may not be written: .+\n\z`, string(said))
	assert.NoFileExists(t, file+"-wal")

	require.NoError(t, os.Chmod(file, 0o644))
	i := g.start(asOrdinary)
	p := paymentOf(i.placed("place-1"), "pay-1")
	p.insistHere(i.running)
	g.whole(i.running, p)
}

// C04, on a SQLite file: an instance that is stopped while it writes keeps the file from the other one, whose answers come
// in time all the same. It wakes up and goes on, or finds that its time is over.
func TestAnInstanceThatIsStoppedWhileItWritesAFileKeepsNobodyWaiting(t *testing.T) {
	g := onFile(t, sqliteFile(t))
	sleeper, other := g.start(), g.start()
	var payments []*insistence
	heldFor := 0
	for round := 0; round < 8 || heldFor < 2; round++ {
		require.Less(t, round, 60, "it never holds the file")
		s := sent(sleeper, round, 8, "pm_ok")
		<-time.After(rand.N(20 * time.Millisecond))
		sleeper.signal(syscall.SIGSTOP)
		if held := !g.writable(); held {
			heldFor++
			p := paymentOf(s.payments[0].order, fmt.Sprint("other-", round))
			p.isRefused(other.running)
			other.becomesReady(false)
			sleeper.signal(syscall.SIGCONT)
			other.becomesReady(true)
		}
		s.takenOver(t, other, sleeper)
		payments = append(payments, s.payments...)
	}
	t.Logf("it held the file in %d rounds of %d", heldFor, len(payments)/8)
	g.whole(other.running, payments...)
}

// writable tells whether the file can be written now: nobody holds it.
func (g ground) writable() bool {
	g.t.Helper()
	c, err := g.rows.Conn(g.t.Context())
	require.NoError(g.t, err)
	defer func() { assert.NoError(g.t, c.Close()) }()
	_, err = c.ExecContext(g.t.Context(), `PRAGMA busy_timeout(200)`)
	require.NoError(g.t, err)
	if _, err = c.ExecContext(g.t.Context(), `BEGIN IMMEDIATE`); err != nil {
		return false
	}
	_, err = c.ExecContext(g.t.Context(), `ROLLBACK`)
	require.NoError(g.t, err)
	return true
}

// Two instances take turns at the file: whoever waits asks often enough to find it free, though the other one is always
// at work. Each has more patience here than a busy machine may cost: what is seen is that nobody is kept out for long.
func TestTwoInstancesUnderLoadTakeTurnsAtOneFile(t *testing.T) {
	g := groundOn(t, sqliteFile(t)).with("KAKUTEI_LEASE", "30s")
	one, other := g.start(), g.start()
	payments := underLoadAt(t, func() { <-time.After(loadFor) }, one.running, other.running)
	tries := 0
	for _, p := range payments {
		tries += p.tries
	}
	t.Logf("%d payments at two instances took %d requests", len(payments), tries)
	assert.LessOrEqual(t, tries-len(payments), len(payments)/20, "few are asked to come again")
	g.whole(one.running, payments...)
}
