package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/spf13/pflag"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/pki/join"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/supervisor"
)

// joinFlags contains the flags of `slipway up` for joining a cluster.
type joinFlags struct {
	master, token, file string
	router              bool
}

func (j *joinFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&j.master, "join", "", "URL of a master whose cluster this host joins, such as https://master.example.com:8443; on a node that has joined, the new address of its cluster")
	flags.StringVar(&j.token, "token", "", "with --join: the output of slipway token create on a master; other users of this machine can see it in the list of processes")
	flags.StringVar(&j.file, "token-file", "", "with --join: a file with the token, or - for standard input")
	flags.BoolVar(&j.router, "router", false, "with --join: run a router on this host, too")
}

// run joins the cluster that --join specifies, if the flag is set.
func (j *joinFlags) run(ctx context.Context, opts *options, in io.Reader, out io.Writer) error {
	if j.master == "" {
		if j.token != "" || j.file != "" || j.router {
			return errors.New("--token, --token-file and --router need --join with the address of a master")
		}
		return nil
	}
	address, err := url.Parse(j.master)
	if err != nil || address.Scheme != "https" || address.Host == "" || address.Path != "" && address.Path != "/" {
		return fmt.Errorf("--join %q is not the address of a master; use https://HOST:8443", j.master)
	}
	h, err := opts.load()
	if err != nil {
		return err
	}
	if h.Joined() {
		return j.rejoin(ctx, h, "https://"+address.Host, in, out)
	}
	token, err := j.readToken(in, out)
	if err != nil {
		return err
	}
	if opts.file == "" {
		if err := config.WriteDefaults(opts.dataDir); err != nil {
			return err
		}
	}
	if h, err = opts.load(); err != nil {
		return err
	}
	role, err := h.Join(ctx, "https://"+address.Host, token, j.router)
	if err != nil {
		return fmt.Errorf("join the cluster of %s: %w", j.master, err)
	}
	fmt.Fprintf(out, "This host joined the cluster of %s as the %s %s.\n", j.master, role, h.Node.NodeName)
	return nil
}

// rejoin updates the connection of a host that has already joined a cluster. If the host is
// running, rejoin restarts its node process.
func (j *joinFlags) rejoin(ctx context.Context, h *host.Host, url string, in io.Reader, out io.Writer) error {
	if j.router {
		return errors.New("this host has already joined a cluster; omit --router")
	}
	var token *join.Token
	if j.token != "" || j.file != "" {
		read, err := j.readToken(in, out)
		if err != nil {
			return err
		}
		token = &read
	}
	if err := h.Rejoin(ctx, url, token); err != nil {
		return fmt.Errorf("find the cluster at %s: %w", j.master, err)
	}
	fmt.Fprintf(out, "This host is the node %s of the cluster of %s.\n", h.Node.NodeName, j.master)
	if _, err := supervisorStatus(ctx, h); err != nil {
		return nil //nolint:nilerr // the host is not running
	}
	return restartUntil(ctx, h, host.Node, func(status supervisor.Status) bool { return status.Ready })
}

// readToken returns the token from --token or --token-file.
func (j *joinFlags) readToken(in io.Reader, out io.Writer) (token join.Token, err error) {
	flag, text := "--token", j.token
	switch {
	case j.file != "" && j.token != "":
		return token, errors.New("use either --token or --token-file")
	case j.file == "-":
		flag = "standard input"
		text, err = readSecret(in, out, "Token")
	case j.file != "":
		var content []byte
		flag = "--token-file"
		content, err = os.ReadFile(j.file)
		text = string(content)
	}
	if err == nil {
		token, err = join.Parse(text)
	}
	if err != nil {
		return token, fmt.Errorf("%s: %w", flag, err)
	}
	return token, nil
}
