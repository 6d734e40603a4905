package idle

import "testing"

func TestLateDatagramUsesNoMemory(t *testing.T) {
	flows := newFlows()
	ended := &datagramFlow{queue: make(chan []byte, maxQueued), cancel: func() {}}
	flows.byRoute[ended.route] = ended
	flows.enqueue(ended, []byte("in time"))
	if flows.memory.TryAcquire(maxQueuedBytes) {
		t.Error("a queued datagram uses no memory")
	}
	flows.remove(ended)
	flows.enqueue(ended, []byte("late"))
	if !flows.memory.TryAcquire(maxQueuedBytes) {
		t.Error("a discarded datagram uses memory")
	}
}
