package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// room is where a SQLite file lies, and a way to have nothing more fit in.
type room struct {
	url   string
	fill  func(i *instance)
	widen func(i *instance)
}

// smallDisk is a file system of its own, in memory. Without the right to mount one it is no disk but a limit.
func smallDisk(t *testing.T) room {
	t.Helper()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=4m"); err != nil {
		require.ErrorIs(t, err, syscall.EPERM)
		t.Log("no file system can be mounted here: the limit of a file's size stands for the disk's")
		return limitedFile(t)
	}
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(folder, syscall.MNT_DETACH)) })
	filler := filepath.Join(folder, "filler")
	return room{
		url: "sqlite:" + filepath.Join(folder, "shop.db"),
		fill: func(*instance) {
			f, err := os.Create(filler)
			require.NoError(t, err)
			defer func() { _ = f.Close() }()
			for err == nil {
				_, err = f.Write(make([]byte, 4096))
			}
			require.ErrorIs(t, err, syscall.ENOSPC)
		},
		widen: func(*instance) { require.NoError(t, os.Remove(filler)) },
	}
}

// limitedFile is a file that may not grow: the kernel sets each process a limit, which ends no program that handles errors.
func limitedFile(t *testing.T) room {
	t.Helper()
	url := sqliteFile(t)
	limit := func(i *instance, bytes string) {
		said, err := exec.CommandContext(t.Context(), "prlimit",
			"--pid", strconv.Itoa(i.process.Process.Pid), "--fsize="+bytes+":unlimited").CombinedOutput()
		require.NoError(t, err, string(said))
	}
	return room{
		url: url,
		fill: func(i *instance) {
			log, err := os.Stat(fileOf(url) + "-wal")
			require.NoError(t, err)
			limit(i, strconv.FormatInt(log.Size(), 10))
		},
		widen: func(i *instance) { limit(i, "unlimited") },
	}
}

// Nothing can be written any more: the service is not ready and pays nothing, until something can.
func TestADiskThatIsFullIsUnavailableUntilThereIsRoom(t *testing.T) {
	for name, open := range map[string]func(*testing.T) room{"a full disk": smallDisk, "a limited file": limitedFile} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			small := open(t)
			g := onFile(t, small.url)
			i := g.start()
			var payments []*insistence
			for n := range 4 {
				payments = append(payments, paymentOf(i.placed(fmt.Sprint("place-", n)), fmt.Sprint("pay-", n)))
			}
			payments[0].insistHere(i.running)
			i.becomesReady(true)

			small.fill(i)
			i.becomesReady(false)
			for _, p := range payments[1:] {
				p.isRefused(i.running)
				assert.Zero(t, g.charges(p.order), "what cannot be recorded is not begun")
			}
			assert.Equal(t, http.StatusOK, i.get(payments[0].order).status, "reading goes on")

			small.widen(i)
			i.becomesReady(true)
			for _, p := range payments {
				p.insistHere(i.running)
			}
			g.whole(i.running, payments...)
		})
	}
}

// The money is taken and there is no room to say so: the outcome is unknown until there is.
func TestADiskThatFillsWhileTheProviderIsAskedLeavesTheOutcomeUnknown(t *testing.T) {
	small := smallDisk(t)
	g := onFile(t, small.url).with("KAKUTEI_LEASE", "5s", "KAKUTEI_GATEWAY_TIMEOUT", "4s")
	i := g.start()
	p := paymentOf(i.placed("place-1"), "pay-1")
	p.body = paidBy("pm_slow_2000")
	answered := make(chan error, 1)
	go func() {
		_, err := p.try(t.Context(), i.running)
		answered <- err
	}()
	require.Eventually(t, func() bool { return g.charges(p.order) == 1 }, soon, time.Millisecond)
	small.fill(i)
	require.NoError(t, <-answered)
	assert.Equal(t, http.StatusServiceUnavailable, p.first.status, p.first.body)
	assert.Contains(t, p.first.body, `"code":"outcome_unknown"`)

	small.widen(i)
	p.insistHere(i.running)
	g.whole(i.running, p)
}
