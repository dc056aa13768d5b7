"""The prepared set of the spelling study: noise and tokens once, in parallel, then mapped into memory."""
