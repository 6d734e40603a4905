package certs

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// keyBits is the size of the RSA keys that sign service account tokens, in bits.
const keyBits = 2048

// newSignerCert returns the `oc adm ca create-signer-cert` command.
func newSignerCert(streams genericiooptions.IOStreams) *cobra.Command {
	var ca authority
	name, days, overwrite := "", 0, false
	command := &cobra.Command{
		Use:   "create-signer-cert",
		Short: "Create a signer (certificate authority/CA) certificate and key",
		Long:  "Create a self-signed CA: the certificate and the key of a certificate authority.",
		Example: `  # Create an authority that is valid for five years
  oc adm ca create-signer-cert --cert=ca.crt --key=ca.key --serial=ca.serial.txt`,
		Run: run(func() error {
			switch {
			case ca.cert == "":
				return errors.New("cert must be provided")
			case ca.key == "":
				return errors.New("key must be provided")
			case name == "":
				return errors.New("name must be provided")
			}
			if err := checkDays(streams.ErrOut, "expire-days", days, authorityDays); err != nil {
				return err
			}
			if !overwrite && ca.exists() {
				return nil
			}
			return ca.create(name, days)
		}),
	}
	flags := command.Flags()
	flags.StringVar(&ca.cert, "cert", masterDir+"/ca.crt", "Certificate file to write.")
	flags.StringVar(&ca.key, "key", masterDir+"/ca.key", "Key file to write.")
	flags.StringVar(&ca.serial, "serial", masterDir+"/ca.serial.txt", "File to write the serial number to. If empty, serial numbers are random.")
	flags.StringVar(&name, "name", defaultName("openshift-signer"), "Name of the signer.")
	flags.Lookup("name").DefValue = "openshift-signer@TIME"
	flags.BoolVar(&overwrite, "overwrite", true, "Overwrite existing files.")
	addDays(flags, &days, "expire-days", authorityDays)
	return command
}

// newServerCert returns the `oc adm ca create-server-cert` command.
func newServerCert(streams genericiooptions.IOStreams) *cobra.Command {
	var ca authority
	var hosts []string
	cert, key, days, overwrite := "", "", 0, false
	command := &cobra.Command{
		Use:   "create-server-cert",
		Short: "Create a signed server certificate and key",
		Long:  "Create a key and server certificate that an authority signs.",
		Example: `  # Create a certificate for two names
  oc adm ca create-server-cert --signer-cert=ca.crt --signer-key=ca.key --signer-serial=ca.serial.txt \
    --hostnames=shop.example.com,www.example.com --cert=shop.crt --key=shop.key`,
		Run: run(func() error {
			switch {
			case len(hosts) == 0:
				return errors.New("at least one hostname must be provided")
			case cert == "":
				return errors.New("cert must be provided")
			case key == "":
				return errors.New("key must be provided")
			}
			if err := errors.Join(checkDays(streams.ErrOut, "expire-days", days, certificateDays), ca.check()); err != nil {
				return err
			}
			if !overwrite && fileExists(cert) && fileExists(key) {
				return nil
			}
			return ca.issue(request{name: hosts[0], hosts: hosts, days: days}, cert, key)
		}),
	}
	flags := command.Flags()
	ca.addFlags(flags)
	flags.StringVar(&cert, "cert", "", "Certificate file to write.")
	flags.StringVar(&key, "key", "", "Key file to write.")
	flags.StringSliceVar(&hosts, "hostnames", nil, "Names and addresses of the server.")
	flags.BoolVar(&overwrite, "overwrite", true, "Overwrite existing files.")
	addDays(flags, &days, "expire-days", certificateDays)
	return command
}

// newKeyPair returns the `oc adm ca create-key-pair` command.
func newKeyPair() *cobra.Command {
	public, private, overwrite := "", "", false
	command := &cobra.Command{
		Use:   "create-key-pair",
		Short: "Create a public/private key pair",
		Long:  "Create an RSA key pair, such as the one that signs service account tokens.",
		Example: `  # Create a key pair
  oc adm ca create-key-pair --public-key=serviceaccounts.public.key --private-key=serviceaccounts.private.key`,
		Run: run(func() error {
			switch {
			case public == "":
				return errors.New("--public-key must be provided")
			case private == "":
				return errors.New("--private-key must be provided")
			case public == private:
				return errors.New("--public-key and --private-key must be different")
			}
			return createKeyPair(public, private, overwrite)
		}),
	}
	flags := command.Flags()
	flags.StringVar(&public, "public-key", "", "File to write the public key to.")
	flags.StringVar(&private, "private-key", "", "File to write the private key to.")
	flags.BoolVar(&overwrite, "overwrite", false, "Overwrite existing files. Otherwise, the command fails if a file exists.")
	return command
}

// createKeyPair writes a new RSA key pair. If overwrite is false, it returns an error if one of the
// files exists.
func createKeyPair(public, private string, overwrite bool) error {
	for _, path := range []string{public, private} {
		if !overwrite && fileExists(path) {
			return fmt.Errorf("create key pair: %q exists: choose another name or use --overwrite", path)
		}
	}
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return fmt.Errorf("generate key: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	return errors.Join(
		writeFile(private, encodePEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)), 0o600),
		writeFile(public, encodePEM("PUBLIC KEY", der), 0o644),
	)
}
