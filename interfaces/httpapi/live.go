package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"kakutei/application/port"
	"kakutei/interfaces/live"
)

const (
	pathLive = "/api/live"

	// stillHere is how long a stream is silent at most: a connection that is dead shows when something is written.
	stillHere = 15 * time.Second
	// onlookersTime is what an onlooker has to take one message, and the provider to show its book.
	onlookersTime = 5 * time.Second
)

// getLive answers GET /api/live: server-sent events of what happens to an actor's records (HTML Standard, 9.2), for as
// long as somebody looks.
func (s *Server) getLive(c echo.Context) error {
	actor := c.QueryParam("actor")
	if !IsName(actor) {
		return invalidQuery("the query must name an actor")
	}
	stream, err := s.config.Live.Look(actor)
	if err != nil {
		return port.ErrUnavailable.Saying("nobody else can look for now").Because(err)
	}
	defer stream.End()
	to := eventStream{c.Response(), http.NewResponseController(c.Response())}
	if err := to.begin(); err != nil {
		return err
	}
	gone := visitOf(c).connection.Done()
	alive := time.NewTicker(stillHere)
	defer alive.Stop()
	for err == nil {
		select {
		case m, open := <-stream.Moments():
			if !open {
				return nil
			}
			err = s.show(c.Request().Context(), to, m)
		case <-alive.C:
			err = to.write(": still here\n\n")
		case <-gone:
			return nil
		}
	}
	return nil // whoever looked has gone, or is too slow
}

// show writes what the provider's book says by now, unless it is about to be asked, and then what happened: so the book
// stands as it was before a call until the call has its answer.
func (s *Server) show(ctx context.Context, to eventStream, m live.Moment) error {
	if m.OrderID != "" && m.Event.What != port.Reserved && m.Event.What != port.Takeover {
		if err := s.showBook(ctx, to, m.OrderID); err != nil {
			return err
		}
	}
	if m.Event.What == "" {
		return nil
	}
	return to.send("record", m.View())
}

func (s *Server) showBook(ctx context.Context, to eventStream, orderID string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), onlookersTime)
	defer cancel()
	list, err := s.config.Till.Gateway.Lookup(ctx, orderID)
	if err != nil {
		return nil //nolint:nilerr // the book is not to be seen; what happened is
	}
	return to.send("book", live.BookOf(orderID, list))
}

// eventStream is an answer that does not end by itself.
type eventStream struct {
	http.ResponseWriter
	*http.ResponseController
}

// begin lifts the limits that are meant for requests which end.
func (e eventStream) begin() error {
	e.Header().Set(echo.HeaderContentType, "text/event-stream")
	if err := e.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	e.WriteHeader(http.StatusOK)
	return e.write("retry: 1000\n\n")
}

func (e eventStream) send(name string, view any) error {
	var document bytes.Buffer
	encoder := json.NewEncoder(&document) // in one line, as a message's data must be
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(view); err != nil {
		return err
	}
	return e.write("event: " + name + "\ndata: " + document.String() + "\n")
}

func (e eventStream) write(text string) error {
	if err := e.SetWriteDeadline(time.Now().Add(onlookersTime)); err != nil {
		return err
	}
	_, err := e.Write([]byte(text))
	return errors.Join(err, e.Flush())
}
