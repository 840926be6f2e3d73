package httpapi

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep a JSON text may be nested. No request needs more than three levels.
const maxDepth = 32

// syntaxError says where a text stops being JSON.
type syntaxError struct {
	at   int // bytes from the start
	what string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("%s (at byte %d)", e.what, e.at) }

// scanner walks over one JSON text (RFC 8259) value by value and builds no tree, so that its memory does not grow with
// the text's nesting. It is stricter than encoding/json: a lone surrogate is an error, not a replacement character. The
// text must be valid UTF-8.
type scanner struct {
	text []byte
	at   int // of the next byte
}

func (s *scanner) fail(format string, args ...any) error {
	return &syntaxError{at: s.at, what: fmt.Sprintf(format, args...)}
}

// peek is the next byte that is not blank, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// end tells whether nothing but blanks is left.
func (s *scanner) end() bool {
	s.peek()
	return s.at == len(s.text)
}

// object reads an object and calls each with every member's name; each reads the member's value.
func (s *scanner) object(each func(name string) error) error {
	return s.sequence('{', '}', func() error {
		if s.peek() != '"' {
			return s.fail("a member's name is expected")
		}
		name, err := s.string()
		if err != nil {
			return err
		}
		if s.peek() != ':' {
			return s.fail("a colon is expected")
		}
		s.at++
		return each(name)
	})
}

// array reads an array and calls each for every element; each reads the element.
func (s *scanner) array(each func() error) error { return s.sequence('[', ']', each) }

func (s *scanner) sequence(open, closing byte, each func() error) error {
	if s.peek() != open {
		return s.fail("%q is expected", open)
	}
	s.at++
	if s.peek() == closing {
		s.at++
		return nil
	}
	for {
		if err := each(); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.at++
		case closing:
			s.at++
			return nil
		default:
			return s.fail("a comma or %q is expected", closing)
		}
	}
}

// word reads true, false or null.
func (s *scanner) word() error {
	s.peek()
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(s.text[s.at:], []byte(word)) {
			s.at += len(word)
			return nil
		}
	}
	return s.fail("a value is expected")
}

// number reads a number and returns it as it is written.
func (s *scanner) number() (string, error) {
	s.peek()
	start := s.at
	s.skipByte('-')
	if !s.skipByte('0') && s.skipDigits() == 0 {
		return "", s.fail("a digit is expected")
	}
	if s.skipByte('.') && s.skipDigits() == 0 {
		return "", s.fail("a digit is expected")
	}
	if s.skipByte('e') || s.skipByte('E') {
		if !s.skipByte('+') {
			s.skipByte('-')
		}
		if s.skipDigits() == 0 {
			return "", s.fail("a digit is expected")
		}
	}
	return string(s.text[start:s.at]), nil
}

func (s *scanner) skipByte(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) skipDigits() (n int) {
	for ; s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9'; s.at++ {
		n++
	}
	return n
}

// string reads a string and returns what it stands for.
func (s *scanner) string() (string, error) {
	if s.peek() != '"' {
		return "", s.fail("a string is expected")
	}
	s.at++
	var content []byte
	for start := s.at; s.at < len(s.text); {
		switch c := s.text[s.at]; {
		case c == '"':
			content = append(content, s.text[start:s.at]...)
			s.at++
			return string(content), nil
		case c < 0x20:
			return "", s.fail("a control character must be escaped")
		case c == '\\':
			content = append(content, s.text[start:s.at]...)
			r, err := s.escape()
			if err != nil {
				return "", err
			}
			content = utf8.AppendRune(content, r)
			start = s.at
		default:
			s.at++
		}
	}
	return "", s.fail("the string does not end")
}

// escapes are the two-character ones.
var escapes = map[byte]rune{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// escape reads one escape sequence, or the two that make a surrogate pair.
func (s *scanner) escape() (rune, error) {
	rest := s.text[s.at+1:]
	if len(rest) == 0 {
		return 0, s.fail("the string does not end")
	}
	if r, known := escapes[rest[0]]; known {
		s.at += 2
		return r, nil
	}
	r, ok := s.unit()
	if !ok {
		return 0, s.fail("there is no such escape")
	}
	if !utf16.IsSurrogate(r) {
		s.at += 6
		return r, nil
	}
	first := s.at
	s.at += 6
	low, ok := s.unit()
	if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
		s.at += 6
		return pair, nil
	}
	s.at = first
	return 0, s.fail("a lone surrogate is no Unicode character")
}

// unit is the UTF-16 code unit of the \uXXXX that comes next.
func (s *scanner) unit() (rune, bool) {
	rest := s.text[s.at:]
	if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(rest[2:6]), 16, 16)
	return rune(n), err == nil
}

// skip reads any value, which stands at this depth, and forgets it.
func (s *scanner) skip(depth int) error {
	if depth > maxDepth {
		return s.fail("it is nested too deeply")
	}
	switch c := s.peek(); {
	case c == '{':
		return s.object(func(string) error { return s.skip(depth + 1) })
	case c == '[':
		return s.array(func() error { return s.skip(depth + 1) })
	case c == '"':
		_, err := s.string()
		return err
	case c == '-' || c >= '0' && c <= '9':
		_, err := s.number()
		return err
	default:
		return s.word()
	}
}
