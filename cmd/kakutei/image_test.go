//go:build image

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// container is a container of the image that .ci/image has built.
type container struct {
	t    *testing.T
	name string
}

func newContainer(t *testing.T) container {
	t.Helper()
	c := container{t: t}
	c.name = c.buildah("from", "--pull-never", os.Getenv("KAKUTEI_TEST_IMAGE"))
	t.Cleanup(func() { assert.NoError(t, exec.Command("buildah", "--storage-driver", "vfs", "rm", c.name).Run()) })
	return c
}

func (c container) buildah(args ...string) string {
	c.t.Helper()
	out, err := exec.CommandContext(c.t.Context(), "buildah", append([]string{"--storage-driver", "vfs"}, args...)...).Output()
	require.NoError(c.t, err, args)
	return strings.TrimSpace(string(out))
}

// command is a call of the program within the container, on the machine's own network.
func (c container) command(env map[string]string, args ...string) *exec.Cmd {
	all := []string{"--storage-driver", "vfs", "run", "--isolation", "chroot"}
	for name, value := range env {
		all = append(all, "--env", name+"="+value)
	}
	all = append(all, c.name, "--", "/kakutei")
	return exec.CommandContext(c.t.Context(), "buildah", append(all, args...)...)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	return address
}

func TestTheImageHoldsTheProgramAndNothingElse(t *testing.T) {
	c := newContainer(t)
	root := c.buildah("mount", c.name)
	var files []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, strings.TrimPrefix(path, root))
		}
		return err
	}))
	assert.Equal(t, []string{"/kakutei"}, files)
	program, err := os.Stat(filepath.Join(root, "kakutei"))
	require.NoError(t, err)
	assert.Zero(t, program.Sys().(*syscall.Stat_t).Uid, "who runs it cannot change it")
	assert.Equal(t, os.FileMode(0o755), program.Mode().Perm())
}

func TestTheImageLetsNobodyInByItself(t *testing.T) {
	said, err := newContainer(t).command(nil, "serve").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(said), "KAKUTEI_LISTEN")
	assert.Contains(t, string(said), "KAKUTEI_DEMO_EXPOSED=yes")
}

func TestTheImageServesAndPaysAnOrderAsNobodyOfTheMachine(t *testing.T) {
	r := &running{t: t, stdout: newOutput(), stderr: newOutput()}
	address := freeAddress(t)
	c := newContainer(t).command(map[string]string{"KAKUTEI_LISTEN": address, "KAKUTEI_LOG_FORMAT": "json"}, "serve")
	c.Stdout, c.Stderr = r.stdout, r.stderr
	require.NoError(t, c.Start())
	r.base = r.stdout.await(t, `page +(http://\S+)/`)[1]

	for _, path := range []string{"/healthz", "/readyz"} {
		assert.Equal(t, http.StatusOK, r.get(path).status, path)
	}
	order := r.placed("place-1")
	first := r.post(order+"/confirm-payment", "pay-1", thousand)
	require.Equal(t, http.StatusOK, first.status, first.body)
	assert.Equal(t, answered{http.StatusOK, true, first.body}, r.post(order+"/confirm-payment", "pay-1", thousand))

	pid := servingAt(t, address)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	assert.Contains(t, string(status), "\nUid:\t65532\t65532\t65532\t65532\n")

	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
	require.NoError(t, c.Wait(), "exit 0: %s", r.stderr)
}

// servingAt is the process whose program is called kakutei and whose environment has the address.
func servingAt(t *testing.T, address string) int {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, file := range found {
		env, err := os.ReadFile(file)
		name, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "comm"))
		var pid int
		if err != nil || string(name) != "kakutei\n" ||
			!slices.Contains(strings.Split(string(env), "\x00"), "KAKUTEI_LISTEN="+address) {
			continue
		}
		_, err = fmt.Sscanf(file, "/proc/%d/environ", &pid)
		require.NoError(t, err)
		return pid
	}
	require.FailNow(t, "no such process")
	return 0
}
