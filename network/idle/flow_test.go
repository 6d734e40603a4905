package idle

import "testing"

func TestLateDatagramUsesNoMemory(t *testing.T) {
	flows := newFlows()
	flow := &datagramFlow{queue: make(chan []byte, maxQueued), cancel: func() {}}
	flows.byRoute[flow.route] = flow
	flows.enqueue(flow, []byte("in time"))
	if flows.memory.TryAcquire(maxQueuedBytes) {
		t.Error("a queued datagram uses no memory")
	}
	flows.remove(flow)
	flows.enqueue(flow, []byte("late"))
	if !flows.memory.TryAcquire(maxQueuedBytes) {
		t.Error("a discarded datagram uses memory")
	}
}
