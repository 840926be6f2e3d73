package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the zones come with the program: not every machine has them

	"kakutei/domain/journal"
	"kakutei/infrastructure/gateway"
)

// into makes a variable's set: it keeps in the field what parse reads.
func into[T any](field *T, parse func(text string) (T, error)) func(string) error {
	return func(text string) (err error) {
		*field, err = parse(text)
		return err
	}
}

// oneOf reads one of the words, and nothing else.
func oneOf(words ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", fmt.Errorf("%.40q is not %s", text, quoted(words))
		}
		return text, nil
	}
}

// quoted lists what may stand there; that it may be empty goes without saying.
func quoted(words []string) string {
	var list []string
	for _, w := range words {
		if w != "" {
			list = append(list, strconv.Quote(w))
		}
	}
	return strings.Join(list, " or ")
}

// positive reads a duration that is longer than zero.
func positive(text string) (time.Duration, error) {
	d, err := duration(text)
	if err == nil && d <= 0 {
		return 0, fmt.Errorf("must be longer than 0, not %.40s", text)
	}
	return d, err
}

// positiveOrOff reads a duration; zero means off.
func positiveOrOff(text string) (time.Duration, error) {
	d, err := duration(text)
	if err == nil && d < 0 {
		return 0, fmt.Errorf("must be longer than 0, or 0 for off, not %.40s", text)
	}
	return d, err
}

func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no duration like 500ms, 10s or 24h", text)
	}
	return d, nil
}

// count reads a whole number from 1 to what 32 bits hold.
func count(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%.40q is no whole number from 1", text)
	}
	return int(n), nil
}

// address reads where to listen, host:port; the host may be empty, the port may be 0.
func address(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil || strings.ContainsAny(host, " \t/@") {
		return "", fmt.Errorf("%.80q is no host:port", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%.20q is no port from 0 to 65535", port)
	}
	return text, nil
}

// onLoopback tells whether an address can only be reached from this machine.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// databaseURL reads which store to use. Its errors never show the text: it may hold a password.
func databaseURL(text string) (string, error) {
	scheme, rest, _ := strings.Cut(text, ":")
	switch scheme {
	case "memory":
		if text != inMemory {
			return "", errors.New("it is memory: with a colon and nothing behind it")
		}
		return text, nil
	case "sqlite":
		switch {
		case rest == "":
			return "", errors.New("a file must follow, as in sqlite:kakutei.db")
		case strings.HasPrefix(rest, "//"):
			return "", errors.New("the file follows sqlite: without slashes of a URL, as in sqlite:kakutei.db")
		case strings.Contains(rest, ":memory:"):
			return "", errors.New("SQLite's own memory is not shared by connections; memory: is what to use")
		}
		return text, nil
	case "postgres", "postgresql":
		if u, err := url.Parse(text); err != nil || !strings.HasPrefix(rest, "//") || u.Opaque != "" {
			return "", fmt.Errorf("not a readable URL like %s://user:password@host:5432/database", scheme)
		}
		return text, nil
	}
	return "", errors.New("must begin with sqlite:, memory:, postgres:// or postgresql://")
}

// gatewayURL reads the provider's base URL, or the word simulator.
func gatewayURL(text string) (string, error) {
	if text == simulator {
		return text, nil
	}
	if _, err := gateway.NewHTTP(gateway.HTTPConfig{BaseURL: text, Timeout: time.Second}); err != nil {
		return "", fmt.Errorf("%w, or be %q", err, simulator)
	}
	return text, nil
}

// gatewayToken reads the secret that the provider is told. The error never shows it.
func gatewayToken(text string) (string, error) {
	_, err := gateway.NewHTTP(gateway.HTTPConfig{BaseURL: "http://localhost", Token: text, Timeout: time.Second})
	return text, err
}

// company reads whose books are kept.
func company(text string) (string, error) {
	if err := journal.CheckCompany(text); err != nil {
		return "", fmt.Errorf("%.140q %w", text, err)
	}
	return text, nil
}

// zone reads a name of the IANA time zone database.
func zone(text string) (*time.Location, error) {
	place, err := time.LoadLocation(text)
	if err != nil || text == "Local" { // the machine's own zone is nobody's decision
		return nil, fmt.Errorf("%.80q is no time zone like Asia/Tokyo", text)
	}
	return place, nil
}
