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

// runtime is a client for HAProxy's runtime interface, a command socket.
type runtime struct {
	socket  string
	timeout time.Duration
}

// send sends a command and returns HAProxy's response.
func (r runtime) send(command string) (string, error) {
	connection, err := net.DialTimeout("unix", r.socket, r.timeout)
	if err != nil {
		return "", fmt.Errorf("connect to HAProxy: %w", err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(r.timeout)) // sockets support deadlines
	if _, err := io.WriteString(connection, command+"\n"); err != nil {
		return "", fmt.Errorf("send command to HAProxy: %w", err)
	}
	resp, err := io.ReadAll(connection)
	if err != nil {
		return "", fmt.Errorf("read HAProxy response: %w", err)
	}
	return strings.TrimSpace(string(resp)), nil
}

// prompt ends each response in interactive mode.
const prompt = "\n> "

// sendAll sends commands over one connection. Each command is one line, which can be followed by a
// payload. sendAll returns HAProxy's error messages, keyed by the index of the command.
func (r runtime) sendAll(commands []string) (refused map[int]string, err error) {
	if len(commands) == 0 {
		return nil, nil
	}
	connection, err := net.DialTimeout("unix", r.socket, r.timeout)
	if err != nil {
		return nil, fmt.Errorf("connect to HAProxy: %w", err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(r.timeout)) // sockets support deadlines
	sent := make(chan error, 1)
	go func() { // HAProxy stops reading commands while its responses are unread
		_, err := io.WriteString(connection, "prompt\n"+strings.Join(commands, "\n")+"\nquit\n")
		sent <- err
	}()
	resp, err := io.ReadAll(connection)
	if err != nil {
		return nil, fmt.Errorf("read HAProxy responses: %w", err)
	}
	if err := <-sent; err != nil {
		return nil, fmt.Errorf("send commands to HAProxy: %w", err)
	}
	responses := strings.Split(string(resp), prompt)
	// Split also returns the texts before the first prompt and after the last prompt.
	if len(responses) != len(commands)+2 {
		return nil, fmt.Errorf("send commands to HAProxy: it responded to %d of %d", len(responses)-2, len(commands))
	}
	refused = map[int]string{}
	for i, response := range responses[1 : len(responses)-1] {
		response = strings.TrimSpace(response)
		if response != "" && !slices.ContainsFunc(accepted, func(text string) bool { return strings.Contains(response, text) }) {
			refused[i] = response
		}
	}
	return refused, nil
}

// accepted lists strings that occur in responses to successful commands.
var accepted = []string{
	"New server registered.", "changed from", "no need to change", "Server deleted.", "New empty certificate store", "New CA file created", "already exists!",
	"ransaction created", "ransaction updated", "Success!", "deleted in crtlist", "' deleted!",
}

// remove deletes servers. It returns the servers that cannot be deleted yet because they have
// connections.
func (r runtime) remove(servers map[string]Server) (still map[string]Server) {
	names := slices.Sorted(maps.Keys(servers))
	commands := make([]string, len(names))
	for i, name := range names {
		commands[i] = "del server " + name
	}
	refused, err := r.sendAll(commands)
	still = map[string]Server{}
	for i, name := range names {
		if err != nil || refused[i] != "" {
			still[name] = servers[name]
		}
	}
	return still
}
