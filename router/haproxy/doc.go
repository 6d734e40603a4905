// Package haproxy drives HAProxy: it writes the configuration of a router's state, runs the program, and brings changes to it, those of servers
// through its runtime interface and others by replacing the process without losing a connection.
package haproxy
