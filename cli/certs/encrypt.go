package certs

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const (
	encryptedBlock = "ENCRYPTED STRING"
	keyBlock       = "ENCRYPTING KEY"
	// cipherHeader is the header of the PEM blocks that seal creates. OpenShift 3's blocks have a
	// DEK-Info header instead, because they use PEM encryption (RFC 1423), which is insecure.
	cipherHeader = "Cipher"
	cipherName   = "AES-256-GCM"
	keySize      = 32
)

// newEncrypt returns the `oc adm ca encrypt` command.
func newEncrypt(streams genericiooptions.IOStreams) *cobra.Command {
	in, out, key, newKey := "", "", "", ""
	command := &cobra.Command{
		Use:   "encrypt",
		Short: "Encrypt data with AES-256-GCM",
		Long: "Encrypt data with AES-256-GCM.\n\n" +
			`The cluster doesn't read encrypted values of its configuration: use "file" or "env" there.`,
		Example: `  # Encrypt the content of a file with a new key
  oc adm ca encrypt --genkey=secret.key --in=secret.txt --out=secret.encrypted`,
		Run: run(func() error {
			switch {
			case key != "" && newKey != "":
				return errors.New("either --genkey or --key may be specified, not both")
			case key == "" && newKey == "":
				return errors.New("--genkey or --key is required")
			}
			data, err := read(in, streams.In)
			if err != nil {
				return err
			}
			if len(bytes.TrimSpace(data)) != len(data) {
				fmt.Fprintln(streams.ErrOut, "Warning: Data includes leading or trailing whitespace, which will be included in the encrypted value")
			}
			secret, err := encryptingKey(key, newKey)
			if err != nil {
				return err
			}
			encrypted, err := seal(secret, data)
			if err != nil {
				return err
			}
			return write(out, streams.Out, encrypted)
		}),
	}
	flags := command.Flags()
	flags.StringVar(&in, "in", "", "File with the data. Default: standard input.")
	flags.StringVar(&out, "out", "", "File to write to. Default: standard output.")
	flags.StringVar(&key, "key", "", "File with the key, as --genkey writes it.")
	flags.StringVar(&newKey, "genkey", "", "File to write a new key to.")
	return command
}

// newDecrypt returns the `oc adm ca decrypt` command.
func newDecrypt(streams genericiooptions.IOStreams) *cobra.Command {
	in, out, key := "", "", ""
	command := &cobra.Command{
		Use:   "decrypt",
		Short: "Decrypt data that was encrypted with \"oc adm ca encrypt\"",
		Long:  "Decrypt data that was encrypted with \"oc adm ca encrypt\", by this client or by a client of OpenShift 3.",
		Example: `  # Print the decrypted content of a file
  oc adm ca decrypt --key=secret.key --in=secret.encrypted`,
		Run: run(func() error {
			if key == "" {
				return errors.New("no key specified")
			}
			data, err := read(in, streams.In)
			if err != nil {
				return err
			}
			secret, err := encryptingKey(key, "")
			if err != nil {
				return err
			}
			plain, err := open(secret, data)
			if err != nil {
				return err
			}
			return write(out, streams.Out, plain)
		}),
	}
	flags := command.Flags()
	flags.StringVar(&in, "in", "", "File with the encrypted data. Default: standard input.")
	flags.StringVar(&out, "out", "", "File to write to, for its owner only. Default: standard output.")
	flags.StringVar(&key, "key", "", "File with the key.")
	return command
}

// encryptingKey creates a key and writes it to newPath. If newPath is empty, it reads an existing
// key from path instead.
func encryptingKey(path, newPath string) ([]byte, error) {
	if newPath != "" {
		key := make([]byte, keySize)
		_, _ = rand.Read(key) // rand.Read never fails
		return key, writeFile(newPath, encodePEM(keyBlock, key), 0o600)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	block, _ := pem.Decode(content)
	if block == nil || block.Type != keyBlock || len(block.Bytes) == 0 {
		return nil, fmt.Errorf("%s does not contain a valid PEM block of type %q", path, keyBlock)
	}
	return block.Bytes, nil
}

// seal encrypts data and returns it as a PEM block.
func seal(key, data []byte) ([]byte, error) {
	aead, err := newCipher(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{
		Type: encryptedBlock, Headers: map[string]string{cipherHeader: cipherName}, Bytes: aead.Seal(nil, nil, data, nil),
	}), nil
}

// open decrypts data that was encrypted by seal or by OpenShift 3's client.
func open(key, data []byte) ([]byte, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != encryptedBlock {
		return nil, fmt.Errorf("input does not contain a valid PEM block of type %q", encryptedBlock)
	}
	if block.Headers[cipherHeader] != cipherName {
		// The deprecated function is necessary to decrypt data that OpenShift 3 encrypted.
		plain, err := x509.DecryptPEMBlock(block, key) //nolint:staticcheck
		if err != nil {
			return nil, fmt.Errorf("decrypt: %w", err)
		}
		return plain, nil
	}
	aead, err := newCipher(key)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, block.Bytes, nil)
	if err != nil {
		return nil, errors.New("decrypt: the key is wrong, or the data was changed")
	}
	return plain, nil
}

func newCipher(key []byte) (cipher.AEAD, error) {
	if len(key) != keySize {
		return nil, fmt.Errorf("read key: must have %d bytes, not %d: create one with --genkey", keySize, len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// read returns the content of a file, or of stream if path is empty.
func read(path string, stream io.Reader) ([]byte, error) {
	if path == "" {
		return io.ReadAll(stream)
	}
	return os.ReadFile(path)
}

// write writes content to a file that only its owner can read, or to stream if path is empty.
func write(path string, stream io.Writer, content []byte) error {
	if path == "" {
		_, err := stream.Write(content)
		return err
	}
	return writeFile(path, content, 0o600)
}
