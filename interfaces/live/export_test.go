package live

// OrdersOf is how many orders a stream remembers.
func OrdersOf(s *Stream) int {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	return len(s.orders)
}
