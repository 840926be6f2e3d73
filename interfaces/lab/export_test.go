package lab

// Busy is the pages when as many run and wait as may, until it is over.
func Busy(p *Pages) (over func()) {
	for range cap(p.turn) {
		p.turn <- struct{}{}
	}
	return func() {
		for range cap(p.turn) {
			<-p.turn
		}
	}
}
