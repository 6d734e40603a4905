package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/pflag"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/pki/join"
)

// joinFlags are the flags of `slipway up` for joining a cluster.
type joinFlags struct {
	master, token string
	router        bool
}

func (j *joinFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&j.master, "join", "", "join the cluster of this master, in the role of the token, such as https://master.example.com:8443")
	flags.StringVar(&j.token, "token", "", "the output of `slipway token create` on a master, for --join")
	flags.BoolVar(&j.router, "router", false, "with --join: run a router on this host, too")
}

// run joins the cluster of --join, if that is set.
func (j *joinFlags) run(ctx context.Context, opts *options, out io.Writer) error {
	if j.master == "" {
		if j.token != "" || j.router {
			return errors.New("--token and --router need --join with the address of a master")
		}
		return nil
	}
	address, err := url.Parse(j.master)
	if err != nil || address.Scheme != "https" || address.Host == "" || address.Path != "" && address.Path != "/" {
		return fmt.Errorf("--join %q is not the address of a master; use https://HOST:8443", j.master)
	}
	token, err := join.Parse(j.token)
	if err != nil {
		return fmt.Errorf("--token: %w", err)
	}
	if opts.file == "" {
		if err := config.WriteDefaults(opts.dataDir); err != nil {
			return err
		}
	}
	h, err := opts.load()
	if err != nil {
		return err
	}
	role, err := h.Join(ctx, "https://"+address.Host, token, j.router)
	if err != nil {
		return fmt.Errorf("join the cluster of %s: %w", j.master, err)
	}
	fmt.Fprintf(out, "This host joined the cluster of %s as the %s %s.\n", j.master, role, h.Node.NodeName)
	return nil
}
