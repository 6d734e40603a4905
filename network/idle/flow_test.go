package idle

import "testing"

func TestADatagramThatComesWhenItsFlowHasEndedTakesNoRoom(t *testing.T) {
	flows := newFlows()
	ended := &flow{waiting: make(chan []byte, maxWaiting), end: func() {}}
	flows.from[ended.route] = ended
	flows.hold(ended, []byte("in time"))
	if flows.room.TryAcquire(maxBytes) {
		t.Error("a datagram that waits takes no room")
	}
	flows.forget(ended)
	flows.hold(ended, []byte("late"))
	if !flows.room.TryAcquire(maxBytes) {
		t.Error("a datagram that is never delivered takes room")
	}
}
