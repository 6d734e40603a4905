package kit

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func testMachine(t *testing.T) *Machine {
	t.Helper()
	m, err := newMachine(Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.remove(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func TestMachinesHaveTheirOwnPorts(t *testing.T) {
	for range 2 {
		m := testMachine(t)
		listener, err := m.Listen("tcp", "0.0.0.0:8443")
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, m.Address)
		}))
		server.Listener.Close()
		server.Listener = listener
		server.Start()
		t.Cleanup(server.Close)

		client := http.Client{Transport: &http.Transport{DialContext: m.Dial}, Timeout: 10 * time.Second}
		response, err := client.Get("http://127.0.0.1:8443/")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if body, _ := io.ReadAll(response.Body); string(body) != m.Address.String() {
			t.Errorf("machine %s responds with %q", m.Address, body)
		}
	}
}

func TestMachineReachesOutside(t *testing.T) {
	inside, outside := testMachine(t), testMachine(t)
	listener, err := outside.Listen("tcp", "0.0.0.0:80")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	callers := make(chan net.Addr, 1)
	go func() {
		if conn, err := listener.Accept(); err == nil {
			callers <- conn.RemoteAddr()
			conn.Close()
		}
	}()
	conn, err := inside.Dial(t.Context(), "tcp", outside.Address.String()+":80")
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	// The source address of a masqueraded connection is this machine's address, to which every
	// network can send responses.
	if caller := (<-callers).String(); strings.HasPrefix(caller, inside.Address.String()+":") {
		t.Errorf("caller %s is not masqueraded", caller)
	}
}
