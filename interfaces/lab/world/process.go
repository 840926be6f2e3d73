package world

import (
	"fmt"
	"runtime"
	"strconv"
	"time"
)

// Point is where a process can be held, or die. Every design that takes money comes to the first two, whatever it does
// beside them; so one storm is the same interleaving for all.
type Point string

// The points, in the order in which a request comes to them.
const (
	Asking Point = "asking" // before the provider is asked
	Taken  Point = "taken"  // the money is taken, the answer on its way
	Worked Point = "worked" // the order is PAID, and that is committed
)

// Process is one request on its way through one instance of the service.
type Process struct {
	Name    string // "A" for the first of its world
	Request Request

	world  *World
	until  Point
	goOn   chan command
	back   chan struct{}
	dead   bool
	ended  bool
	broken any // what it panicked with
	answer Answer
}

type command struct {
	until Point
	die   bool
}

// Send has a client send the request. Nothing happens before the process is told how far to go.
func (w *World) Send(r Request) *Process {
	p := &Process{
		Name: nameOf(len(w.processes)), Request: r, world: w,
		goOn: make(chan command), back: make(chan struct{}),
	}
	w.processes = append(w.processes, p)
	detail := fmt.Sprintf("%s, %s %d", r.Key, r.Order, r.Amount)
	if r.Operation != Confirm {
		detail = fmt.Sprintf("%s, %s %s", r.Key, r.Operation, r.Order)
	}
	w.note(p.Name, Client, Sent, r.Actor+": "+detail)
	go p.run()
	return p
}

// nameOf is A to Z, and numbers where nobody reads them.
func nameOf(n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if n < len(letters) {
		return letters[n : n+1]
	}
	return strconv.Itoa(n + 1)
}

func (p *Process) run() {
	defer func() {
		p.broken = recover() // nil also after runtime.Goexit
		p.ended = true
		p.back <- struct{}{}
	}()
	p.obey(<-p.goOn)
	p.answer = p.world.service(p, p.Request)
}

// obey ends the goroutine when the process is to die. What its deferred functions still try has no effect: see Dead.
func (p *Process) obey(c command) {
	p.until = c.until
	if c.die {
		p.dead = true
		runtime.Goexit()
	}
}

// resume lets the process run until it is held or has ended. It alone runs meanwhile.
func (p *Process) resume(c command) {
	if p.ended {
		return
	}
	p.goOn <- c
	<-p.back
	if p.broken != nil {
		panic(p.broken)
	}
}

// Until lets the process run to the point, or to its end if it does not come there.
func (p *Process) Until(at Point) { p.resume(command{until: at}) }

// Finish lets the process run to its end; its client is told the answer.
func (p *Process) Finish() Answer {
	if !p.ended {
		p.resume(command{})
		p.deliver()
	}
	return p.answer
}

func (p *Process) deliver() {
	p.world.note(p.Name, Client, Answered, strconv.Itoa(p.answer.Status)+" "+p.answer.Body)
	p.world.told = append(p.world.told, Told{Request: p.Request, Answer: p.answer})
}

// FinishUnheard is Finish with the answer lost on its way.
func (p *Process) FinishUnheard() {
	p.resume(command{})
	p.world.note(p.Name, Client, AnswerLost, strconv.Itoa(p.answer.Status))
}

// Kill ends the process where it is held. One that has its answer already takes it along.
func (p *Process) Kill() {
	p.resume(command{die: true})
	p.world.note(p.Name, Shop, Died, "")
}

// Statuses are those of all answers that were given, in the order in which their requests were sent, lost ones too.
func (w *World) Statuses() (statuses []int) {
	for _, p := range w.processes {
		if p.ended && !p.dead {
			statuses = append(statuses, p.answer.Status)
		}
	}
	return statuses
}

// Close ends what is still held.
func (w *World) Close() {
	for _, p := range w.processes {
		p.resume(command{die: true})
	}
}

// Reach holds the process if somebody wants it held here.
func (p *Process) Reach(at Point) {
	if p.dead || p.until != at {
		return
	}
	p.back <- struct{}{}
	p.obey(<-p.goOn)
}

// Dead tells that the process has died: nothing that it still does can have an effect.
func (p *Process) Dead() bool { return p.dead }

// Note puts a step of the service into the timeline.
func (p *Process) Note(what Step, detail string) { p.world.note(p.Name, Shop, what, detail) }

// Now is the database's time.
func (p *Process) Now() time.Time { return p.world.now }

// Commit is one transaction on the service's tables: nobody sees half of it. It returns what it has come to.
func (p *Process) Commit(transaction func() Step) {
	done := transaction()
	p.Note(done, "")
	if done.paid() {
		p.Reach(Worked)
	}
}

// Charge has the provider take the request's money under a gateway key, and returns the charge's id.
func (p *Process) Charge(gatewayKey string) string { return p.Ask(gatewayKey).Charge }

// Ask is Charge for a provider that may decline.
func (p *Process) Ask(gatewayKey string) Line {
	return p.AskFor(p.Request.Order, p.Request.Amount, gatewayKey)
}

// AskFor is Ask for money of the caller's choice.
func (p *Process) AskFor(order string, amount int64, gatewayKey string) Line {
	p.Reach(Asking)
	asks := Asks
	if gatewayKey == "" {
		asks = AsksKeyless
	}
	p.Note(asks, gatewayKey)
	line, booked := p.world.Provider.Take(order, amount, gatewayKey)
	what, detail := Repeats, line.Charge
	switch {
	case booked && line.Declined:
		what = Declines
	case booked:
		what, detail = Takes, fmt.Sprintf("%d, %s", amount, line.Charge)
	}
	p.world.note(p.Name, Gateway, what, detail)
	p.Reach(Taken)
	return line
}
