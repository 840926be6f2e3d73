package scenario

import (
	"bytes"
	"io"
	"regexp"
)

// aloud is a writer for what people read: godog adds to each step where in the program it is done, which says nothing to
// who has written the scenario.
type aloud struct {
	out  io.Writer
	line []byte
}

var inTheProgram = regexp.MustCompile(` +# \S+\.go:\d+ -> \S+`)

// Write passes whole lines on.
func (a *aloud) Write(text []byte) (int, error) {
	a.line = append(a.line, text...)
	end := bytes.LastIndexByte(a.line, '\n') + 1
	whole := inTheProgram.ReplaceAll(a.line[:end], nil)
	a.line = append([]byte(nil), a.line[end:]...)
	if _, err := a.out.Write(whole); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Flush passes on what is left.
func (a *aloud) Flush() error {
	_, err := a.out.Write(a.line)
	a.line = nil
	return err
}
