package lab

import (
	"log/slog"
	"net/http"

	"kakutei/interfaces/web"
)

// Where the pages are.
const (
	Path       = web.LabPath
	PathPlaces = Path + "/places"
)

// Path is where a design is shown.
func (d Design) Path() string { return Path + "/" + d.Name }

// atOnce is how many readers may have storms run at the same time; a run takes milliseconds.
const atOnce = 2

// waiting is how many more may wait for their turn. Whoever comes then is told to come again.
const waiting = 32

// Pages show what the storms come to: nothing is drawn that has not just been run.
type Pages struct {
	lab  *Lab
	log  *slog.Logger
	turn chan struct{} // one for each who runs or waits
	slot chan struct{} // one for each who runs
}

// NewPages are the pages of a lab.
func NewPages(l *Lab, log *slog.Logger) *Pages {
	return &Pages{lab: l, log: log, turn: make(chan struct{}, atOnce+waiting), slot: make(chan struct{}, atOnce)}
}

// Handlers are all pages by their paths.
func (p *Pages) Handlers() map[string]http.Handler {
	handlers := map[string]http.Handler{
		Path:       p.page(web.Lab, "lab.title", func(*http.Request) (any, error) { return p.overview() }),
		PathPlaces: p.page(web.LabPlaces, "lab.places.title", func(*http.Request) (any, error) { return p.places(), nil }),
	}
	for i, d := range Designs {
		show := func(r *http.Request) (any, error) { return p.design(i, r.URL.Query().Get("storm")) }
		handlers[d.Path()] = p.page(web.LabDesign, "lab.design."+d.Name+".title", show)
	}
	return handlers
}

// page runs what it shows while it holds one of the places at work.
func (p *Pages) page(page *web.Page, title string, run func(r *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case p.turn <- struct{}{}:
			defer func() { <-p.turn }()
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "as many as can run storms; come again in a moment", http.StatusServiceUnavailable)
			return
		}
		select {
		case p.slot <- struct{}{}:
		case <-r.Context().Done():
			return
		}
		content, err := func() (any, error) {
			defer func() { <-p.slot }()
			return run(r)
		}()
		if err == nil {
			err = page.Send(w, r, title, content)
		}
		if err != nil {
			p.log.ErrorContext(r.Context(), "the lab cannot be shown", "error", err)
			http.Error(w, "the lab cannot be shown", http.StatusInternalServerError)
		}
	})
}

// Overview is every design in every storm.
type Overview struct {
	Storms   []Storm
	Rows     []Row
	Designs  []Design
	Places   string
	Measured string // name of the row that is the service's own
}

// Row is a design in every storm.
type Row struct {
	Design string
	Path   string // empty for the service's own
	Cells  []Cell
}

// Cell is a design in a storm.
type Cell struct {
	Run
	Home bool // the storm in which the design's fault is explained
}

// own is the name of the service's own design.
const own = "kakutei"

func (p *Pages) overview() (Overview, error) {
	o := Overview{Storms: Storms, Designs: Designs, Places: PathPlaces, Measured: own}
	for _, d := range Designs {
		row := Row{Design: d.Name, Path: d.Path()}
		for _, s := range Storms {
			row.Cells = append(row.Cells, Cell{Run: d.Run(s), Home: s.Name == d.Storm})
		}
		o.Rows = append(o.Rows, row)
	}
	row := Row{Design: own}
	for _, s := range Storms {
		run, err := p.lab.Kakutei(s)
		if err != nil {
			return Overview{}, err
		}
		row.Cells = append(row.Cells, Cell{Run: run})
	}
	o.Rows = append(o.Rows, row)
	return o, nil
}

// Comparison is a design beside the service's own in one storm.
type Comparison struct {
	Design         Design
	Storm          string
	Storms         []Storm
	Naive, Kakutei Run
	Source         Source
	Before, After  *Design // nil at the ends
	Lab            string
}

func (p *Pages) design(i int, storm string) (Comparison, error) {
	d := Designs[i]
	chosen, found := stormNamed(storm)
	if !found {
		chosen, _ = stormNamed(d.Storm)
	}
	kakuteis, err := p.lab.Kakutei(chosen)
	if err != nil {
		return Comparison{}, err
	}
	c := Comparison{
		Design: d, Storm: chosen.Name, Storms: Storms, Naive: d.Run(chosen), Kakutei: kakuteis, Source: d.Source(), Lab: Path,
	}
	if i > 0 {
		c.Before = &Designs[i-1]
	}
	if i+1 < len(Designs) {
		c.After = &Designs[i+1]
	}
	return c, nil
}

func stormNamed(name string) (Storm, bool) {
	for _, s := range Storms {
		if s.Name == name {
			return s, true
		}
	}
	return Storm{}, false
}

// ThreePlaces is the comparison of the places for a key.
type ThreePlaces struct {
	Places     []Place
	Situations []SituationRow
	Grown      []Growth // one for each place
	Keys       int
	Sources    []Source
	Lab        string
}

// SituationRow is a situation in each place.
type SituationRow struct {
	Name string
	Held []Held
}

func (p *Pages) places() ThreePlaces {
	three := ThreePlaces{Places: Places, Grown: Grown(), Keys: Keys, Lab: Path}
	for _, s := range Situations {
		row := SituationRow{Name: s.Name}
		for _, place := range Places {
			row.Held = append(row.Held, place.Run(s))
		}
		three.Situations = append(three.Situations, row)
	}
	for _, place := range Places {
		three.Sources = append(three.Sources, place.Source())
	}
	return three
}
