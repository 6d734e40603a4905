// Package repocheck holds the rules of the repository as tests: which folder may import which, how
// packages, files and comments look, and what must not stand in the tree. The vocabulary of folders
// is the table in layers_test.go. A failure names the file, the rule it breaks and what to do.
//
// Source files are parsed, nothing is compiled, so that the rules hold in a clean clone within
// seconds.
package repocheck
