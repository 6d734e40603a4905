package vxlan

import (
	"bytes"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
)

func TestPodsOfEarlierVersionAreKept(t *testing.T) {
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	create := func(size uint32) *ebpf.Map {
		m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: size, MaxEntries: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	former, locals := create(localShare), create(localSize)
	key, value := []byte{10, 128, 0, 2}, []byte{7, 0, 0, 0, 15, 0, 0, 0}
	if err := former.Put(key, value); err != nil {
		t.Fatal(err)
	}
	if err := copyLocals(locals, former); err != nil {
		t.Fatal(err)
	}
	var got []byte
	if err := locals.Lookup(key, &got); err != nil || !bytes.Equal(got, append(value, 0, 0, 0, 0)) {
		t.Errorf("the pod is %v, %v", got, err)
	}
}
