package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"kakutei/interfaces/client"
)

// instance is a process that serves: the service, or the no-op.
type instance struct {
	process *exec.Cmd
	ended   chan struct{}
	log     string
	base    string
	shop    *client.Client

	mu    sync.Mutex
	again []error // why a request was sent once more
}

// heed keeps why a try was not the last one.
func (i *instance) heed(t client.Try) {
	if !t.Again {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.again = append(i.again, fmt.Errorf("%s was answered after %s: %w", t.Operation, t.Took, t.Err))
}

// smooth tells that no request had to be sent again, or why.
func (i *instance) smooth() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return errors.Join(i.again...)
}

// retries is how many requests had to be sent again since it was asked last.
func (i *instance) retries() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := len(i.again)
	i.again = nil
	return n
}

// token is who pays.
const token = "demo-bench"

// serve starts the service on a database. settings are further variables.
func (b *bench) serve(ctx context.Context, database string, settings ...string) (*instance, error) {
	return b.launch(ctx, []string{b.service, "serve"}, append([]string{
		"KAKUTEI_DATABASE_URL=" + database, "KAKUTEI_SIMULATOR_BOOK=memory:", "KAKUTEI_SWEEP_INTERVAL=0",
	}, settings...)...)
}

// launch starts a process that listens on KAKUTEI_LISTEN, and waits until it answers.
func (b *bench) launch(ctx context.Context, command []string, env ...string) (*instance, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	log, err := os.CreateTemp(b.dir, "log-")
	if err != nil {
		return nil, err
	}
	address := "127.0.0.1:" + port
	i := &instance{ended: make(chan struct{}), log: log.Name(), base: "http://" + address}
	i.process = exec.Command(command[0], command[1:]...)
	i.process.Env = append(env, "KAKUTEI_LISTEN="+address)
	i.process.Dir = b.dir
	i.process.Stderr = log
	i.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if i.shop, err = client.New(i.base, client.WithToken(token), client.WithObserver(i.heed)); err != nil {
		return nil, err
	}
	if err := errors.Join(i.process.Start(), log.Close()); err != nil {
		return nil, err
	}
	go func() {
		_ = i.process.Wait()
		close(i.ended)
	}()
	return i, i.await(ctx)
}

func (i *instance) await(ctx context.Context) error {
	for range 600 {
		select {
		case <-i.ended:
			said, err := os.ReadFile(i.log)
			return errors.Join(fmt.Errorf("the service has ended: %s", said), err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.base+"/readyz", nil)
		if err != nil {
			return err
		}
		if answer, err := http.DefaultClient.Do(request); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
	return errors.New("the service does not become ready")
}

func (i *instance) pid() int { return i.process.Process.Pid }

// stop has the process end as an operator would.
func (i *instance) stop() error {
	_ = i.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-i.ended:
		return os.Remove(i.log)
	case <-time.After(30 * time.Second):
		_ = i.process.Process.Kill()
		<-i.ended
		return errors.New("the service does not end")
	}
}
