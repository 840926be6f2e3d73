package metrics

import (
	"net/http"
	"strconv"
	"time"

	"kakutei/domain/fault"
)

// methods are those that a label may name: a client can send any word.
var methods = map[string]bool{
	http.MethodGet: true, http.MethodHead: true, http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true,
	http.MethodDelete: true, http.MethodOptions: true,
}

// Request is told of each HTTP request once it is answered: its method, the route that it met (empty for none), the
// status, how long it took, and the code of the problem unless that was a recorded one.
func (m *Metrics) Request(method, route string, status int, took time.Duration, code fault.Code) {
	if !methods[method] {
		method = other
	}
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status/100)+"xx").Inc()
	m.durations.WithLabelValues(route).Observe(took.Seconds())
	if code != "" {
		m.problems.WithLabelValues(string(code)).Inc()
	}
}
