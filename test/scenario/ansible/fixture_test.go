package ansible

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/test/kit"
)

// playbookTimeout is the timeout for a playbook. The longest playbook takes a tenth of this time.
const playbookTimeout = 5 * time.Minute

// fixture runs playbooks against hosts that are network namespaces on this machine.
type fixture struct {
	t *testing.T
	// dir contains the inventory and the script that Ansible runs instead of ssh.
	dir string
	// hosts maps addresses to machines.
	hosts map[string]*kit.Machine
	// variables maps host names to additional host variables.
	variables map[string]string
	// groups maps group names to the names of their hosts. settings contains the lines in
	// [OSEv3:vars].
	groups   map[string][]string
	settings []string
	program  string // path of bin/slipway
	playbook string // path of packaging/ansible
}

// newFixture returns a fixture without hosts.
func newFixture(t *testing.T, c *kit.Cluster) *fixture {
	t.Helper()
	return &fixture{
		t: t, dir: t.TempDir(), hosts: map[string]*kit.Machine{}, variables: map[string]string{}, groups: map[string][]string{},
		program: c.RepositoryFile("bin", "slipway"), playbook: c.RepositoryFile("packaging", "ansible"),
	}
}

// add adds a machine to the inventory. variables contains host variables in the form NAME=value.
func (f *fixture) add(name string, machine *kit.Machine, variables ...string) {
	f.hosts[machine.Address.String()] = machine
	f.variables[name] = strings.Join(append(variables, "ansible_host="+machine.Address.String()), " ")
}

// addHost adds a host with a data directory. When the test ends, `slipway down --purge` runs on the
// host.
func (f *fixture) addHost(name string, host *kit.Host) {
	host.SlipwayWith(nil, "version")
	f.add(name, host.Machine, "slipway_data_dir="+host.DataDir)
}

// write writes the inventory, and the script that replaces ssh and runs Ansible's commands in the
// host's network namespace.
func (f *fixture) write() {
	f.t.Helper()
	var shell, inventory strings.Builder
	shell.WriteString("#!/bin/bash\nhost=${*: -2:1} command=${*: -1}\ncase $host in\n")
	for address, machine := range f.hosts {
		fmt.Fprintf(&shell, "%s) exec nsenter --net=/proc/%d/fd/%d sh -c \"$command\" ;;\n", address, os.Getpid(), machine.FD())
	}
	shell.WriteString("*) echo \"unknown host $host\" >&2; exit 255 ;;\nesac\n")
	inventory.WriteString("[OSEv3:children]\n")
	for group := range f.groups {
		fmt.Fprintln(&inventory, group)
	}
	fmt.Fprintf(&inventory, "[OSEv3:vars]\n%s\n", strings.Join(append([]string{
		"slipway_service=false", "slipway_program=" + f.program, "ansible_ssh_executable=" + filepath.Join(f.dir, "ssh"),
		"ansible_ssh_args=", "ansible_ssh_transfer_method=piped", "ansible_remote_tmp=" + filepath.Join(f.dir, "remote"),
	}, f.settings...), "\n"))
	for group, names := range f.groups {
		fmt.Fprintf(&inventory, "[%s]\n", group)
		for _, name := range names {
			fmt.Fprintln(&inventory, name, f.variables[name])
		}
	}
	for name, file := range map[string]struct {
		content string
		mode    os.FileMode
	}{"ssh": {shell.String(), 0o700}, "hosts": {inventory.String(), 0o600}} {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(file.content), file.mode); err != nil {
			f.t.Fatal(err)
		}
	}
}

// result is a playbook's output, and the total number of changes on all hosts.
type result struct {
	output  string
	changes int
	err     error
}

var changedPattern = regexp.MustCompile(`\bchanged=(\d+)`)

// try runs a playbook against the current inventory, with additional arguments for
// ansible-playbook.
func (f *fixture) try(t *testing.T, playbook string, args ...string) result {
	t.Helper()
	f.write()
	ctx, cancel := context.WithTimeout(t.Context(), playbookTimeout)
	defer cancel()
	args = append([]string{"-i", filepath.Join(f.dir, "hosts"), filepath.Join("playbooks", playbook)}, args...)
	command := exec.CommandContext(ctx, "ansible-playbook", args...)
	command.Dir = f.playbook
	// Write the output to a file, because a process that a playbook starts would keep a pipe open.
	log, err := os.CreateTemp(f.dir, "log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), "HOME="+f.dir, "ANSIBLE_NOCOLOR=1", "LC_ALL=C.UTF-8", "ANSIBLE_DISPLAY_SKIPPED_HOSTS=0")
	start := time.Now()
	r := result{err: command.Run()}
	text, err := os.ReadFile(log.Name())
	if err != nil {
		t.Fatal(err)
	}
	r.output = string(text)
	for _, match := range changedPattern.FindAllStringSubmatch(r.output, -1) {
		number, _ := strconv.Atoi(match[1]) // the pattern matches only digits
		r.changes += number
	}
	t.Logf("%s took %s and made %d changes", playbook, time.Since(start).Round(time.Second/10), r.changes)
	return r
}

// run works like try, but the playbook must succeed.
func (f *fixture) run(t *testing.T, playbook string, args ...string) result {
	t.Helper()
	r := f.try(t, playbook, args...)
	if r.err != nil {
		t.Fatalf("%s: %v\n%s", playbook, r.err, r.output)
	}
	return r
}

// runUnchanged works like run, but the playbook must not change anything.
func (f *fixture) runUnchanged(t *testing.T, playbook string) {
	t.Helper()
	if r := f.run(t, playbook); r.changes != 0 {
		t.Errorf("%s changes a cluster that already has these settings:\n%s", playbook, r.output)
	}
}

// balancerDir returns the data directory for a load balancer. A load balancer that a playbook
// starts is stopped when the test ends.
func (f *fixture) balancerDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(f.dir, "balancer")
	t.Cleanup(func() {
		content, err := os.ReadFile(filepath.Join(dir, "lb", "pid"))
		if err != nil {
			return // no playbook has started the load balancer
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(string(content))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGTERM) // the load balancer might have exited
		}
		if log, err := os.ReadFile(filepath.Join(dir, "lb", "log")); err == nil && t.Failed() {
			t.Logf("load balancer:\n%s", log)
		}
	})
	return dir
}
