package haproxy

import (
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"time"
)

// runtime is HAProxy's command socket.
type runtime struct {
	socket  string
	timeout time.Duration
}

// ask sends commands, as one line, and returns what HAProxy answers.
func (r runtime) ask(commands ...string) (string, error) {
	connection, err := net.DialTimeout("unix", r.socket, r.timeout)
	if err != nil {
		return "", fmt.Errorf("reach HAProxy: %w", err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(r.timeout)) // a socket takes it
	if _, err := io.WriteString(connection, strings.Join(commands, ";")+"\n"); err != nil {
		return "", fmt.Errorf("ask HAProxy: %w", err)
	}
	answer, err := io.ReadAll(connection)
	if err != nil {
		return "", fmt.Errorf("read answer of HAProxy: %w", err)
	}
	return strings.TrimSpace(string(answer)), nil
}

// commandsAtOnce is how many commands are sent as one line; a line has 16 KiB.
const commandsAtOnce = 40

// tell sends commands of which HAProxy answers only what did not work, apart from what it notes as done.
func (r runtime) tell(commands []string) error {
	for batch := range slices.Chunk(commands, commandsAtOnce) {
		answer, err := r.ask(batch...)
		if err != nil {
			return err
		}
		for line := range strings.Lines(answer) {
			if line = strings.TrimSpace(line); line != "" && !slices.ContainsFunc(accepted, func(text string) bool { return strings.Contains(line, text) }) {
				return fmt.Errorf("change servers: HAProxy says %q", line)
			}
		}
	}
	return nil
}

// accepted are answers to commands that have worked.
var accepted = []string{"New server registered.", "changed from", "no need to change"}

// elsewhere is an address that a new server has for a moment: HAProxy computes the value of its cookie when the address changes.
const elsewhere = "127.255.255.254:1"

// update brings the servers of a backend to another state. It returns the commands, and the servers that are no longer needed, by backend and name. What a
// running process cannot change makes ok false. parked are servers of before that are still there, out of use.
func update(now, then Backend, parked map[string]Server) (commands []string, left map[string]Server, ok bool) {
	left = map[string]Server{}
	wanted := map[string]Server{}
	for _, server := range then.Servers {
		wanted[server.Name] = server
	}
	had := map[string]Server{}
	var leave []string // the last of all, so that a backend whose servers are all others is never without one
	for _, server := range now.Servers {
		had[server.Name] = server
		name := now.Name + "/" + server.Name
		if _, stays := wanted[server.Name]; !stays {
			leave = append(leave, "set server "+name+" state maint")
			left[name] = server
		}
	}
	for _, server := range then.Servers {
		name := then.Name + "/" + server.Name
		before, there := had[server.Name]
		waiting, isParked := parked[name]
		switch {
		case there && before.Options != server.Options, !there && isParked && waiting.Options != server.Options:
			return nil, nil, false
		case !there && isParked:
			commands = append(commands, fmt.Sprintf("set server %s weight %d", name, server.Weight), "set server "+name+" state ready")
		case !there:
			commands = append(commands, add(then, server)...)
		case before.Weight != server.Weight:
			commands = append(commands, fmt.Sprintf("set server %s weight %d", name, server.Weight))
		}
	}
	return append(commands, leave...), left, true
}

func add(backend Backend, server Server) []string {
	name := backend.Name + "/" + server.Name
	commands := []string{fmt.Sprintf("add server %s %s weight %d %s", name, server.address(), server.Weight, server.Options)}
	if backend.Cookie {
		commands = []string{
			fmt.Sprintf("add server %s %s weight %d %s", name, elsewhere, server.Weight, server.Options),
			fmt.Sprintf("set server %s addr %s port %s", name, server.IP, server.Port),
		}
	}
	if server.Checked {
		commands = append(commands, "enable health "+name)
	}
	return append(commands, "set server "+name+" state ready")
}

// remove takes servers out of a HAProxy, and returns those that are still there, since they have connections.
func (r runtime) remove(servers map[string]Server) (still map[string]Server) {
	still = map[string]Server{}
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(servers)), commandsAtOnce) {
		commands := make([]string, len(batch))
		for i, name := range batch {
			commands[i] = "del server " + name
		}
		answer, err := r.ask(commands...)
		said := strings.FieldsFunc(answer, func(c rune) bool { return c == '\n' }) // one line for each
		for i, name := range batch {
			if err != nil || len(said) != len(batch) || !strings.Contains(said[i], "Server deleted.") {
				still[name] = servers[name]
			}
		}
	}
	return still
}
