//go:build unix

package gormstore

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// mayWrite tells whether SQLite would open the file for writing; one that is not there it makes. A file that it may only
// read it opens all the same, and begins a log beside it that may only be read as well, also when the file's mode is
// mended: so it is not let near such a file.
func mayWrite(path string) error {
	const toWrite = 2
	if err := syscall.Access(path, toWrite); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the SQLite file may not be written: %w", &fs.PathError{Op: "access", Path: path, Err: err})
	}
	return nil
}
