// Package certs creates certificates, keys and kubeconfigs from files, without a server. It
// implements `oc adm ca`, `oc adm create-api-client-config`, `create-kubeconfig` and
// `create-node-config`.
//
// `slipway up` itself creates and renews all certificates of a cluster. The commands in this
// package are for other programs that need certificates, and for scripts that were written for
// OpenShift 3.
package certs

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

const (
	daysPerYear = 365
	// certificateDays and authorityDays are OpenShift 3.11's default lifetimes.
	certificateDays = 2 * daysPerYear
	authorityDays   = 5 * daysPerYear

	masterDir = "openshift.local.config/master"
)

// New returns the `oc adm ca` command.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	ca := &cobra.Command{
		Use:   "ca",
		Short: "Manage certificates and keys",
		Long: "Manage certificates and keys of programs outside the cluster.\n\n" +
			"The cluster creates and renews its own certificates. To see them, run: slipway certificates",
		Run: util.DefaultSubCommandRun(streams.ErrOut),
	}
	ca.AddCommand(creators(streams)...)
	ca.AddCommand(newEncrypt(streams), newDecrypt(streams))
	return ca
}

func creators(streams genericiooptions.IOStreams) []*cobra.Command {
	return []*cobra.Command{newSignerCert(streams), newServerCert(streams), newMasterCerts(streams), newKeyPair()}
}

// NewCreators returns the `oc adm ca` subcommands that create files. They are also subcommands of
// `oc adm` itself, their former location, but hidden from its help.
func NewCreators(streams genericiooptions.IOStreams) []*cobra.Command {
	commands := creators(streams)
	for _, command := range commands {
		command.Hidden = true
	}
	return commands
}

// addFlags adds the flags for the CA's files.
func (a *authority) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&a.cert, "signer-cert", masterDir+"/ca.crt", "Certificate file of the signer.")
	flags.StringVar(&a.key, "signer-key", masterDir+"/ca.key", "Key file of the signer.")
	flags.StringVar(&a.serial, "signer-serial", masterDir+"/ca.serial.txt", "File with the last serial number. If empty, serial numbers are random.")
}

// addDays adds a flag for a number of days. normal is the default.
func addDays(flags *pflag.FlagSet, days *int, name string, normal int) {
	flags.IntVar(days, name, normal, "Validity of the certificates in days. A longer validity than the default is not recommended.")
}

// checkDays returns an error if days is not positive, and prints a warning if days exceeds normal.
func checkDays(out io.Writer, name string, days, normal int) error {
	if days <= 0 {
		return fmt.Errorf("%s must be valid number of days", name)
	}
	if days > normal {
		fmt.Fprintf(out, "WARNING: Validity of certificate is greater than %d years!\n", normal/daysPerYear)
	}
	return nil
}

// defaultName returns a name for a CA. The name contains the Unix time in seconds, which makes it
// unique.
func defaultName(prefix string) string {
	return prefix + "@" + strconv.FormatInt(time.Now().Unix(), 10)
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// readAuthorities reads CA certificates from all paths and concatenates them. flag is the flag that
// specifies the paths. Error messages contain it.
func readAuthorities(flag string, paths []string) ([]byte, error) {
	var all [][]byte
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s must be a valid certificate file: %w", flag, err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("%s must be a valid certificate file: %q contains no certificate", flag, path)
		}
		all = append(all, content)
	}
	return bytes.Join(all, []byte("\n")), nil
}

// run returns a cobra Run function that calls action and rejects arguments.
func run(action func() error) func(*cobra.Command, []string) {
	return func(command *cobra.Command, args []string) {
		if len(args) > 0 {
			util.CheckErr(util.UsageErrorf(command, "no arguments are supported"))
		}
		util.CheckErr(action())
	}
}
