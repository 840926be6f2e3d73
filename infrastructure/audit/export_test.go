package audit

import "time"

// WithPatience has the last entries have so long, however slow the machine is.
func (w *Writer) WithPatience(d time.Duration) { w.last = d }
