package haproxy

import "fmt"

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
