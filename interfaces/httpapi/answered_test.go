package httpapi

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/assert"
)

func TestAnAnswerThatHasBegunIsNotWrittenTwice(t *testing.T) {
	for name, end := range map[string]func() error{
		"an error": func() error { return errors.New("too late") },
		"a panic":  func() error { panic("too late") },
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			logger := slog.New(slog.NewJSONHandler(&log, nil))
			s := New(Config{Deadline: time.Second, Lease: time.Second, Logger: logger})
			s.echo.GET("/begun", func(c echo.Context) error {
				_ = c.Blob(http.StatusOK, "text/plain", []byte("begun"))
				return end()
			})
			answer := httptest.NewRecorder()
			s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://localhost/begun", http.NoBody))
			assert.Equal(t, http.StatusOK, answer.Code)
			assert.Equal(t, "begun", answer.Body.String())
			assert.Contains(t, log.String(), "too late", "but it is logged")
			assert.NotContains(t, log.String(), "already committed")
		})
	}
}
