//go:build ha

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// cluster is two PostgreSQL nodes that Patroni leads, and the etcd that they agree through. All of it is on the loopback
// interface, keeps its files in one temporary directory and is gone when the test ends.
type cluster struct {
	t        *testing.T
	mode     replication
	dir      string
	programs string              // PostgreSQL's
	owner    *syscall.Credential // nil: whoever runs the test
	etcd     string
	nodes    [2]*node
}

// node is one PostgreSQL server and its Patroni.
type node struct {
	name, sql, api, dir string
	patroni             *exec.Cmd
}

// replication is what a commit waits for.
type replication struct{ synchronous, strict bool }

var (
	asynchronous = replication{}
	synchronous  = replication{synchronous: true}               // for a standby, as long as there is one
	strict       = replication{synchronous: true, strict: true} // for a standby, whether there is one or not
)

// Patroni's times: a leader that is not heard of for this long is replaced. Its defaults are 30 and 10 seconds.
const (
	leaderTTL    = 6
	loopWait     = 1
	retryTimeout = 2
)

// newCluster starts one and returns when one node leads and the other is its standby.
func newCluster(t *testing.T, r replication) *cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "kakutei-ha-") // PostgreSQL's user cannot look into t.TempDir
	require.NoError(t, err)
	c := &cluster{t: t, mode: r, dir: dir, programs: os.Getenv("KAKUTEI_HA_POSTGRES")}
	t.Cleanup(func() {
		c.tellWhenFailed()
		require.NoError(t, os.RemoveAll(dir))
	})
	require.FileExists(t, filepath.Join(c.programs, "postgres"), "run `make ha`, which says where PostgreSQL is")
	if os.Geteuid() == 0 { // which PostgreSQL refuses to run as
		c.owner = ownerOf(t, "postgres")
		require.NoError(t, os.Chown(dir, int(c.owner.Uid), int(c.owner.Gid)))
	}
	c.startEtcd()
	for i := range c.nodes {
		c.nodes[i] = c.newNode(fmt.Sprint("node", i+1))
	}
	for _, n := range c.nodes {
		c.start(n)
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			c.kill(n)
		}
	})
	c.awaitStandby()
	return c
}

func ownerOf(t *testing.T, name string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup(name)
	require.NoError(t, err)
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	require.NoError(t, err)
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	require.NoError(t, err)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// run starts a program of the cluster's. What it says is in a file of its name.
func (c *cluster) run(name string, args ...string) *exec.Cmd {
	c.t.Helper()
	log, err := os.OpenFile(filepath.Join(c.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(c.t, err)
	defer func() { _ = log.Close() }()
	p := exec.Command(args[0], args[1:]...) //nolint:noctx // its end is a test's matter
	p.Dir, p.Stdout, p.Stderr = c.dir, log, log
	p.Env = []string{"PATH=" + c.programs + ":/usr/bin:/bin", "HOME=" + c.dir, "LC_ALL=C"}
	p.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner, Setpgid: true}
	require.NoError(c.t, p.Start())
	return p
}

func (c *cluster) startEtcd() {
	c.t.Helper()
	c.etcd = freePort(c.t)
	peers := freePort(c.t)
	p := c.run("etcd", "etcd", "--data-dir", filepath.Join(c.dir, "etcd"), "--name", "etcd",
		"--listen-client-urls", "http://"+c.etcd, "--advertise-client-urls", "http://"+c.etcd,
		"--listen-peer-urls", "http://"+peers, "--initial-advertise-peer-urls", "http://"+peers,
		"--initial-cluster", "etcd=http://"+peers)
	c.t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	require.Eventually(c.t, func() bool {
		_, err := fetch(c.t.Context(), http.MethodGet, "http://"+c.etcd+"/health", nil)
		return err == nil
	}, soon, 20*time.Millisecond, "etcd answers")
}

// newNode writes a node's configuration, in JSON, which is YAML.
func (c *cluster) newNode(name string) *node {
	c.t.Helper()
	n := &node{name: name, sql: freePort(c.t), api: freePort(c.t), dir: filepath.Join(c.dir, name)}
	type m = map[string]any
	config, err := json.Marshal(m{
		"scope": "kakutei", "name": name,
		"restapi": m{"listen": n.api, "connect_address": n.api},
		"etcd3":   m{"host": c.etcd},
		"bootstrap": m{
			"dcs": m{
				"ttl": leaderTTL, "loop_wait": loopWait, "retry_timeout": retryTimeout,
				"synchronous_mode": c.mode.synchronous, "synchronous_mode_strict": c.mode.strict,
				"postgresql": m{"use_pg_rewind": true, "parameters": m{"max_connections": 200}},
			},
			"initdb": []any{m{"encoding": "UTF8"}, m{"locale": "C"}},
		},
		"postgresql": m{
			"listen": n.sql, "connect_address": n.sql, "data_dir": n.dir, "bin_dir": c.programs,
			"pgpass": filepath.Join(c.dir, name+".pgpass"),
			"pg_hba": []string{"host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"},
			"authentication": m{
				"superuser": m{"username": "postgres"}, "replication": m{"username": "replicator"},
			},
			"parameters": m{"unix_socket_directories": ""},
		},
	})
	require.NoError(c.t, err)
	require.NoError(c.t, os.WriteFile(c.config(n), config, 0o644))
	return n
}

func (c *cluster) config(n *node) string { return filepath.Join(c.dir, n.name+".yml") }

// start starts a node's Patroni, which starts PostgreSQL: as a leader, or behind the leader that there is.
func (c *cluster) start(n *node) {
	c.t.Helper()
	n.patroni = c.run(n.name, "patroni", c.config(n))
}

// kill ends a node's processes all at once, as a power cut would.
func (c *cluster) kill(n *node) {
	c.t.Helper()
	if n.patroni == nil {
		return
	}
	c.signal(n, syscall.SIGKILL)
	_ = n.patroni.Wait()
	n.patroni = nil
}

// signal sends all of a node's processes a signal that they cannot refuse.
func (c *cluster) signal(n *node, s syscall.Signal) {
	c.t.Helper()
	pids := append([]int{n.patroni.Process.Pid}, descendants(n.patroni.Process.Pid)...)
	if text, err := os.ReadFile(filepath.Join(n.dir, "postmaster.pid")); err == nil {
		line, _, _ := strings.Cut(string(text), "\n")
		postmaster, err := strconv.Atoi(line)
		require.NoError(c.t, err)
		pids = append(append(pids, postmaster), descendants(postmaster)...)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, s) // it may be gone already
	}
}

// url is the cluster for a client: all hosts, of which it wants the one that can be written to.
func (c *cluster) url() string {
	return "postgres://postgres@" + c.nodes[0].sql + "," + c.nodes[1].sql +
		"/postgres?target_session_attrs=read-write&connect_timeout=2&sslmode=disable"
}

// roles are what Patroni says of the nodes that it knows of, by name: leader, sync_standby, replica.
func (c *cluster) roles() map[string]string {
	var told struct {
		Members []struct{ Name, Role, State string }
	}
	for _, n := range c.nodes {
		soon, cancel := context.WithTimeout(c.t.Context(), time.Second) // it may sleep
		text, err := fetch(soon, http.MethodGet, "http://"+n.api+"/cluster", nil)
		cancel()
		if err != nil || json.Unmarshal(text, &told) != nil {
			continue
		}
		roles := map[string]string{}
		for _, m := range told.Members {
			if m.State == "running" || m.State == "streaming" {
				roles[m.Name] = m.Role
			}
		}
		return roles
	}
	return nil
}

// pair is the node that leads and the other one. Nil when none does.
func (c *cluster) pair() (leader, other *node) {
	roles := c.roles()
	for i, n := range c.nodes {
		if roles[n.name] == "leader" {
			return n, c.nodes[1-i]
		}
	}
	return nil, nil
}

// awaitStandby waits until one node leads and the other one may take over.
func (c *cluster) awaitStandby() {
	c.t.Helper()
	role := "replica"
	if c.mode.synchronous {
		role = "sync_standby"
	}
	require.Eventually(c.t, func() bool {
		leader, other := c.pair()
		return leader != nil && c.roles()[other.name] == role
	}, patience, 50*time.Millisecond, "a leader and its synchronous standby")
}

// switchOver has the other node lead, as an operator asks for it.
func (c *cluster) switchOver() {
	c.t.Helper()
	leader, other := c.pair()
	require.NotNil(c.t, leader)
	body := fmt.Sprintf(`{"leader":%q,"candidate":%q}`, leader.name, other.name)
	_, err := fetch(c.t.Context(), http.MethodPost, "http://"+leader.api+"/switchover", []byte(body))
	require.NoError(c.t, err)
}

// withhold has the leader send its standby nothing any more, without telling it so.
func (c *cluster) withhold() {
	c.t.Helper()
	leader, _ := c.pair()
	require.NotNil(c.t, leader)
	conn, err := pgx.Connect(c.t.Context(), "postgres://postgres@"+leader.sql+"/postgres?sslmode=disable")
	require.NoError(c.t, err)
	defer func() { _ = conn.Close(c.t.Context()) }()
	var sender int
	require.NoError(c.t, conn.QueryRow(c.t.Context(), `SELECT pid FROM pg_stat_replication`).Scan(&sender))
	require.NoError(c.t, syscall.Kill(sender, syscall.SIGSTOP))
}

// rewinds is how often a node's Patroni has had to cut off what no other node has.
func (c *cluster) rewinds() (times int) {
	c.t.Helper()
	for _, n := range c.nodes {
		text, err := os.ReadFile(filepath.Join(c.dir, n.name+".log"))
		require.NoError(c.t, err)
		times += bytes.Count(text, []byte("pg_rewind: Done!"))
	}
	return times
}

// tellWhenFailed shows what the cluster's programs have said last.
func (c *cluster) tellWhenFailed() {
	if !c.t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(c.dir, "*.log"))
	for _, path := range logs {
		text, _ := os.ReadFile(path)
		c.t.Logf("%s:\n%s", filepath.Base(path), text[max(0, len(text)-4000):])
	}
}

// fetch is one request that must succeed.
func fetch(ctx context.Context, method, url string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = errors.New(res.Status + ": " + string(text))
	}
	return text, err
}
