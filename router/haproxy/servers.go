package haproxy

import "fmt"

// temporaryAddress is the address of a newly added server. The server's address is changed
// afterwards, because HAProxy computes the server's cookie value when the address changes.
const temporaryAddress = "127.255.255.254:1"

// update returns the commands that change a backend's servers, and the servers that are no longer
// needed, keyed by backend and name. parked contains unused servers that still exist. ok is false
// if a running process does not support the change.
func update(now, then Backend,
	parked map[string]Server) (commands []string, unused map[string]Server, ok bool) {
	unused = map[string]Server{}
	desired := map[string]Server{}
	for _, server := range then.Servers {
		desired[server.Name] = server
	}
	had := map[string]Server{}
	var leave []string // executed last, so that a backend always has a server
	for _, server := range now.Servers {
		had[server.Name] = server
		name := now.Name + "/" + server.Name
		if _, stays := desired[server.Name]; !stays {
			leave = append(leave, "set server "+name+" state maint")
			unused[name] = server
		}
	}
	for _, server := range then.Servers {
		name := then.Name + "/" + server.Name
		before, ok := had[server.Name]
		waiting, isParked := parked[name]
		switch {
		case ok && before.Options != server.Options, !ok && isParked && waiting.Options != server.Options:
			return nil, nil, false
		case !ok && isParked:
			commands = append(commands, fmt.Sprintf("set server %s weight %d", name, server.Weight), "set server "+name+" state ready")
		case !ok:
			commands = append(commands, add(then, server)...)
		case before.Weight != server.Weight:
			commands = append(commands, fmt.Sprintf("set server %s weight %d", name, server.Weight))
		}
	}
	return append(commands, leave...), unused, true
}

func add(backend Backend, server Server) []string {
	name := backend.Name + "/" + server.Name
	commands := []string{fmt.Sprintf("add server %s %s weight %d %s", name, server.address(), server.Weight, server.Options)}
	if backend.Cookie {
		commands = []string{
			fmt.Sprintf("add server %s %s weight %d %s", name, temporaryAddress, server.Weight, server.Options),
			fmt.Sprintf("set server %s addr %s port %s", name, server.IP, server.Port),
		}
	}
	if server.Checked {
		commands = append(commands, "enable health "+name)
	}
	return append(commands, "set server "+name+" state ready")
}
