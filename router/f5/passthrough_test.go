package f5

import (
	"bytes"
	"crypto/tls"
	"encoding/hex"
	"net"
	"os/exec"
	"strings"
	"testing"
)

// tclEvents implements the iRule commands that passthroughRule uses. The payload arrives in
// packets. The output contains one line for each command that has an effect.
const tclEvents = `
proc when {event body} { proc on_$event {} $body }
namespace eval TCP {
	proc payload {{what {}}} { if {$what eq "length"} { return [string length $::payload] }; return $::payload }
	proc collect {} { puts collect }
	proc release {} { puts release }
}
namespace eval SSL { proc disable {side} { puts "SSL $side" } }
namespace eval HTTP { proc disable {} { puts HTTP } }
proc pool {name} { puts "pool $name" }
proc class {match args} {
	if {[lindex $args end] ne "/Common/ssl_passthrough_servername_dg"} { error "no data group [lindex $args end]" }
	array set records {www.example.com /Common/web *.wild.example.com /Common/wild}
	if {[lindex $args 0] eq "-value"} { return $records([lindex $args 1]) }
	return [info exists records([lindex $args 0])]
}
`

// clientHello returns the first message that a TLS client sends for a server name.
func clientHello(t *testing.T, name string) []byte {
	t.Helper()
	client, server := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Ignore the error: the handshake fails, because no server responds.
		_ = tls.Client(client, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
	}()
	buffer := make([]byte, 1<<15)
	size, err := server.Read(buffer)
	if err != nil {
		t.Fatal(err)
	}
	_ = server.Close()
	<-done
	return buffer[:size]
}

// The rule runs in a real Tcl interpreter. The test replaces the appliance's commands, but not the
// rule's own parsing code.
func TestRuleFindsServerName(t *testing.T) {
	rule := strings.ReplaceAll(passthroughRule, "DATAGROUP", "/Common/"+dataGroup)
	const passed = "SSL clientside SSL serverside HTTP pool "
	hello := clientHello(t, "www.example.com")
	for _, test := range []struct {
		name    string
		packets [][]byte
		want    string
	}{
		{"host", [][]byte{hello}, "collect " + passed + "/Common/web release"},
		{"upper case", [][]byte{clientHello(t, "WWW.Example.com")}, "collect " + passed + "/Common/web release"},
		{"several packets", [][]byte{hello[:3], hello[3:90], hello[90:]}, "collect collect collect " + passed + "/Common/web release"},
		{"wildcard", [][]byte{clientHello(t, "any.wild.example.com")}, "collect " + passed + "/Common/wild release"},
		{"below a wildcard", [][]byte{clientHello(t, "a.b.wild.example.com")}, "collect release"},
		{"another host", [][]byte{clientHello(t, "other.example.com")}, "collect release"},
		{"no name", [][]byte{clientHello(t, "192.0.2.1")}, "collect release"},
		{"no TLS", [][]byte{[]byte("GET / HTTP/1.1\r\n\r\n")}, "collect release"},
	} {
		t.Run(test.name, func(t *testing.T) {
			program := tclEvents + rule + "\nset payload {}\non_CLIENT_ACCEPTED\n"
			for _, packet := range test.packets {
				program += "append payload [binary format H* " + hex.EncodeToString(packet) + "]\non_CLIENT_DATA\n"
			}
			command := exec.Command("tclsh")
			command.Stdin = strings.NewReader(program)
			var problems bytes.Buffer
			command.Stderr = &problems
			output, err := command.Output()
			if err != nil || problems.Len() > 0 {
				t.Fatalf("run the rule: %v\n%s", err, problems.String())
			}
			if got := strings.Join(strings.Fields(string(output)), " "); got != test.want {
				t.Errorf("the effects of the rule are %q, want %q", got, test.want)
			}
		})
	}
}
