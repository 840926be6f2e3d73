package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
)

// sqliteFile is the database's file and what SQLite keeps beside it, as this process has met them first. Whoever deletes
// or replaces one of them takes it away from under the open connections, and SQLite does not notice: it goes on writing
// into a file that has no name any more, or a log that belongs to another file. So they are compared, by device and
// inode, before a transaction does anything and around each COMMIT. A file that was lost once stays lost: what happened
// to it meanwhile is for a person to find out, who then starts the service again.
type sqliteFile struct {
	path    string
	readers *sql.DB
	turn    chan struct{} // of whoever finds out what is there
	held    atomic.Pointer[holding]
	lost    atomic.Bool
}

// holding is what has been met, and a connection that is never used. As long as it is open SQLite does not begin a new
// log, and the kernel gives no other file the same inode.
type holding struct {
	anchor *sql.Conn
	files  []os.FileInfo // in the order of companions
}

// companions are what SQLite keeps beside a file, and the file itself: the log, and the index over it with its locks.
var companions = []string{"", "-wal", "-shm"}

// errFileLost says that the database is not there any more.
var errFileLost = errors.New("the SQLite file, its -wal or its -shm was deleted or replaced: nothing is read or written " +
	"before a restart")

func watchSQLite(path string, readers *sql.DB) *sqliteFile {
	return &sqliteFile{path: path, readers: readers, turn: make(chan struct{}, 1)}
}

// meet finds out, once, which files this process works on.
func (f *sqliteFile) meet(ctx context.Context) error {
	if f.held.Load() != nil {
		return nil
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if f.held.Load() != nil {
		return nil
	}
	if err := mayWrite(f.path); err != nil {
		return err
	}
	before, err := os.Stat(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it is made when it is opened
		return err
	}
	anchor, err := f.readers.Conn(ctx)
	if err != nil {
		return err
	}
	met, err := f.look(ctx, anchor, before)
	if err != nil {
		return errors.Join(err, anchor.Close())
	}
	f.held.Store(&holding{anchor, met})
	return nil
}

// look reads something, which opens the log, and notes what is there then.
func (f *sqliteFile) look(ctx context.Context, anchor *sql.Conn, before os.FileInfo) ([]os.FileInfo, error) {
	var tables int
	if err := anchor.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return nil, err
	}
	met := make([]os.FileInfo, len(companions))
	for i, suffix := range companions {
		info, err := os.Stat(f.path + suffix)
		if err != nil && (suffix == "" || !errors.Is(err, fs.ErrNotExist)) { // a file system may allow no log
			return nil, err
		}
		met[i] = info
	}
	if before != nil && !os.SameFile(before, met[0]) {
		return nil, errors.New("the SQLite file was replaced while it was opened")
	}
	return met, nil
}

// present is nil as long as the files are those that were met.
func (f *sqliteFile) present() error {
	held := f.held.Load()
	if held == nil {
		return nil
	}
	if f.lost.Load() {
		return errFileLost
	}
	for i, was := range held.files {
		if was == nil {
			continue
		}
		switch now, err := os.Stat(f.path + companions[i]); {
		case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(was, now):
			f.lost.Store(true)
			return errFileLost
		case err != nil:
			return fmt.Errorf("what became of the SQLite file: %w", err)
		}
	}
	return nil
}

// gone tells whether no connection may be closed any more: the last one would write the log that it still has into a
// file that it is not of, and delete another's.
func (f *sqliteFile) gone() bool { return f.present() != nil }

// letGo ends the holding.
func (f *sqliteFile) letGo() error {
	if held := f.held.Swap(nil); held != nil {
		return held.anchor.Close()
	}
	return nil
}
