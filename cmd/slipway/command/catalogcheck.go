package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/catalog/conformance"
)

// errBrokerViolates makes `slipway catalog check` exit with status 1 after it has printed the
// report.
var errBrokerViolates = errors.New("the broker violates rules of the Open Service Broker API")

// catalogCheck contains the flags of `slipway catalog check`.
type catalogCheck struct {
	conformance.Config
	username, passwordFile, tokenFile, caFile, parameters, namespace string
}

func catalogCommand(opts *options) *cobra.Command {
	command := &cobra.Command{Use: "catalog", Short: "Check brokers and bundles of the service catalog", GroupID: "host"}
	command.AddCommand(catalogCheckCommand(), catalogTestCommand(opts))
	return command
}

func catalogCheckCommand() *cobra.Command {
	check := &catalogCheck{}
	command := &cobra.Command{
		Use:   "check URL",
		Short: "Check whether a broker follows the Open Service Broker API",
		Long: "Check whether a broker follows the rules of the Open Service Broker API, version " + conformance.Version + ". The command needs\n" +
			"no cluster. Without --service, it creates nothing. With --service, it provisions an instance, changes its plan if\n" +
			"the service allows it, binds it if it is bindable, and deletes both.\n\n" +
			"The exit status is 1 if the broker violates a rule.",
		Example: "  slipway catalog check https://broker.example.com --username admin --password-file password\n" +
			"  slipway catalog check https://broker.example.com --token-file token --service db --plan small --parameters '{\"size\": 1}'",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			check.URL = args[0]
			if err := check.complete(); err != nil {
				return err
			}
			return check.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&check.username, "username", "", "user name for the broker")
	flags.StringVar(&check.passwordFile, "password-file", "", "file with the password of the user")
	flags.StringVar(&check.tokenFile, "token-file", "", "file with a bearer token")
	flags.StringVar(&check.caFile, "ca-file", "", "file with the certificate authorities to verify the broker's certificate")
	flags.StringVar(&check.Service, "service", "", "name of a service to provision an instance of")
	flags.StringVar(&check.Plan, "plan", "", "name of a plan of the service (default: the first)")
	flags.StringVar(&check.parameters, "parameters", "", "parameters of the instance, as a JSON object")
	flags.StringVar(&check.namespace, "namespace", "default", "project of the instance")
	flags.DurationVar(&check.Timeout, "timeout", 10*time.Minute, "deadline for each asynchronous operation")
	command.MarkFlagsRequiredTogether("username", "password-file")
	command.MarkFlagsMutuallyExclusive("username", "token-file")
	return command
}

// complete reads the files that the flags specify, and creates the client.
func (c *catalogCheck) complete() error {
	secret := ""
	if file := c.passwordFile + c.tokenFile; file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		secret = strings.TrimSpace(string(content))
	}
	c.Authorize = func(r *http.Request) {
		switch {
		case c.username != "":
			r.SetBasicAuth(c.username, secret)
		case secret != "":
			r.Header.Set("Authorization", "Bearer "+secret)
		}
	}
	config := &tls.Config{}
	if c.caFile != "" {
		content, err := os.ReadFile(c.caFile)
		if err != nil {
			return err
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(content) {
			return fmt.Errorf("read certificate authorities %q: the file contains none", c.caFile)
		}
	}
	c.Client = &http.Client{
		Timeout: time.Minute, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.Interval = time.Second
	c.Context = map[string]any{"platform": "kubernetes", "namespace": c.namespace, "clusterid": "conformance-check"}
	if c.parameters == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(c.parameters), &c.Parameters); err != nil {
		return fmt.Errorf("parse --parameters: %w", err)
	}
	return nil
}

// run checks the broker and prints one line for each rule.
func (c *catalogCheck) run(ctx context.Context, out io.Writer) error {
	results, err := conformance.Run(ctx, c.Config)
	violations := 0
	for _, result := range results {
		if result.Problem == "" {
			fmt.Fprintf(out, "ok    %s\n", result.Rule)
			continue
		}
		violations++
		fmt.Fprintf(out, "FAIL  %s: %s\n", result.Rule, result.Problem)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d rules checked, %d violations\n", len(results), violations)
	if violations > 0 {
		return errBrokerViolates
	}
	return nil
}
