package main

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// limitConfig says how much may come, and from whose pages.
type limitConfig struct {
	rate     int // requests per second and actor; 0: any number
	inFlight int
	origins  []string
}

func (c *limitConfig) variables() []variable {
	return []variable{
		{
			name: "KAKUTEI_RATE_LIMIT", initial: "0", set: into(&c.rate, countOrOff),
			means: "requests per second and actor in this instance, burst twice that; 0 turns it off",
		},
		{
			name: "KAKUTEI_MAX_IN_FLIGHT", initial: "256", set: into(&c.inFlight, count),
			means: "requests at work at once; more are shed with 503",
		},
		{
			name: "KAKUTEI_CORS_ORIGINS", set: into(&c.origins, origins),
			means: "origins of checkout pages that may call from a browser, with commas between them",
		},
	}
}

// maxRate is the highest rate that is told from none.
const maxRate = 1_000_000

// countOrOff reads a whole number; zero means off.
func countOrOff(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 || n > maxRate {
		return 0, fmt.Errorf("%.40q is no whole number from 1 to %d, or 0 for off", text, maxRate)
	}
	return int(n), nil
}

// origins reads a list of origins.
func origins(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var all []string
	for part := range strings.SplitSeq(text, ",") {
		o, err := origin(strings.Trim(part, " "))
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// origin is one as browsers write it (RFC 6454 §6.2): in lower case and without the scheme's own port. "*" is none: who
// may call is said one by one.
func origin(text string) (string, error) {
	lower := strings.ToLower(text)
	u, err := url.Parse(lower)
	visible := !strings.ContainsFunc(text, func(r rune) bool { return r < 0x21 || r > 0x7e })
	if err != nil || !visible || u.Hostname() == "" || lower != u.Scheme+"://"+u.Host ||
		!slices.Contains([]string{"http", "https"}, u.Scheme) || strings.ContainsAny(u.Host, "*@%\"'<>") {
		return "", fmt.Errorf("%.80q is no origin like https://shop.example or http://localhost:3000", text)
	}
	if port := u.Port(); port == "" || port == "80" && u.Scheme == "http" || port == "443" && u.Scheme == "https" {
		lower = strings.TrimSuffix(lower, ":"+port)
	}
	return lower, nil
}
