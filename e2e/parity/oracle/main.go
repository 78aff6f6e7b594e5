// Command oracle answers what upstream's controllers do in a given world. It
// runs the controllers of k8s.io/kubernetes themselves, at the version in
// go.mod, against stores and an API server of ours. README.md has the format.
//
// Start reading at run.go; upstream.go is where upstream is called.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"k8s.io/klog/v2"
)

func main() {
	verifying := flag.Bool("verify", false, "ask the vectors in the given files again and compare")
	runs := flag.Int("runs", 1, "with -verify: how often each vector is run")
	flag.Parse()
	quiet()
	work := func() error { return stream(os.Stdin, os.Stdout) }
	if *verifying {
		work = func() error { return verifyFiles(flag.Args(), *runs) }
	}
	if err := work(); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// quiet silences upstream's logs, and lets garbage grow further than usual:
// nearly all of it is a world that was just answered.
func quiet() {
	klog.SetLogger(klog.Logger{})
	debug.SetGCPercent(400)
}

// stream answers line by line, each answer flushed, so that the other side may
// wait for one before it sends the next.
func stream(in io.Reader, out io.Writer) error {
	answers := bufio.NewWriterSize(out, 1<<16)
	return eachLine(in, func(line []byte) error {
		if _, err := answers.Write(append(compact(answerLine(line)), '\n')); err != nil {
			return err
		}
		return answers.Flush()
	})
}

func answerLine(line []byte) Answer {
	c, err := readCase(line)
	if err != nil {
		return Answer{ID: c.ID, Fault: err.Error()}
	}
	return ask(c)
}

// eachLine has no limit on the length of a line; blank lines are skipped.
func eachLine(in io.Reader, each func(line []byte) error) error {
	lines := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := each(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func verifyFiles(files []string, runs int) error {
	if len(files) == 0 {
		return errors.New("-verify needs files of vectors")
	}
	_, failed, err := verify(files, runs, os.Stdout)
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d vectors were answered differently", failed)
	}
	return err
}
