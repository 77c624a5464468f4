/**
 * The part of a run that is written in R, the same on every engine and in base R alone: reads the input (`values.ts`),
 * runs the script in an environment of its own, and writes what it gave. It reports what is wrong with the output by
 * kind; `output.ts` has the words.
 */
export const PRELUDE = String.raw`
.headgate <- local({
  count <- function(con) readBin(con, "integer", 1L, endian = "little")

  read_strings <- function(con) {
    n <- count(con)
    sizes <- readBin(con, "integer", n, endian = "little")
    bytes <- readBin(con, "raw", sum(as.double(sizes[sizes > 0L])))
    texts <- rep("", n)
    full <- sizes > 0L
    if (any(full)) texts[full] <- readChar(bytes, sizes[full], useBytes = TRUE)
    Encoding(texts) <- "UTF-8"
    texts[sizes < 0L] <- NA_character_
    texts
  }

  read <- function(con) {
    type <- readBin(con, "integer", 1L, size = 1L)
    if (type == 1L) return(readBin(con, "double", count(con), endian = "little"))
    if (type == 2L) return(readBin(con, "integer", count(con), endian = "little"))
    if (type == 3L) return(read_strings(con))
    if (type == 5L) return(as.logical(readBin(con, "integer", count(con), endian = "little")))
    if (type != 4L) return(NULL)
    names <- read_strings(con)
    items <- vector("list", length(names))
    names(items) <- names
    for (i in seq_along(items)) items[i] <- list(read(con))
    if ("Dates" %in% names) items <- as.data.frame(items)
    items
  }

  write_strings <- function(texts, con) {
    texts <- enc2utf8(texts)
    missing <- is.na(texts)
    sizes <- nchar(texts, type = "bytes")
    sizes[missing] <- -1L
    writeBin(length(texts), con, endian = "little")
    writeBin(as.integer(sizes), con, endian = "little")
    writeBin(charToRaw(paste(texts[!missing], collapse = "")), con)
  }

  write <- function(value, con) {
    type <- if (is.null(value)) 0L else switch(typeof(value),
      double = 1L, integer = 2L, character = 3L, list = 4L, logical = 5L)
    writeBin(type, con, size = 1L)
    if (type == 0L) return(invisible())
    if (type == 3L) return(write_strings(value, con))
    if (type == 4L) {
      write_strings(names(value), con)
      for (item in value) write(item, con)
      return(invisible())
    }
    writeBin(length(value), con, endian = "little")
    writeBin(if (type == 5L) as.integer(value) else as.vector(value), con, endian = "little")
  }

  wrong <- function(x) list(wrong = class(x)[1L])

  dates <- function(x) {
    if (is.null(x)) return(NULL)
    if (inherits(x, "POSIXt")) return(as.double(as.POSIXct(x)))
    if (inherits(x, "Date")) return(as.double(x) * 86400)
    if (!is.numeric(x) || inherits(x, "integer64")) return(wrong(x))
    as.double(x)
  }

  numbers <- function(x) {
    if (is.null(x)) return(NULL)
    if (!(is.numeric(x) || is.logical(x)) || inherits(x, "integer64")) return(wrong(x))
    as.double(x)
  }

  texts <- function(x) {
    if (is.null(x)) return(NULL)
    if (is.factor(x)) x <- as.character(x)
    if (is.logical(x) && all(is.na(x))) x <- rep(NA_character_, length(x))
    if (is.character(x)) as.vector(x) else wrong(x)
  }

  shape <- function(value) {
    if (!is.list(value) || is.data.frame(value)) return(list(value = wrong(value)))
    reports <- as.character(unlist(value[["Errors"]]))
    series <- value[["TimeSeries"]]
    if (is.null(series)) return(list(series = NULL, reports = reports))
    if (!is.list(series)) return(list(series = wrong(series), reports = reports))
    columns <- list(dates(series[["Dates"]]), numbers(series[["Values"]]),
      texts(series[["Version"]]), texts(series[["Tags"]]))
    names(columns) <- c("Dates", "Values", "Version", "Tags")
    list(series = columns, reports = reports)
  }

  # The innermost line of the script among the calls.
  line_of <- function(calls, file) {
    for (call in rev(calls)) {
      place <- attr(call, "srcref")
      if (!is.null(place) && identical(attr(place, "srcfile"), file)) return(as.integer(place)[1L])
    }
    NA_integer_
  }

  compute <- function(input) {
    notes <- character()
    line <- NA_integer_
    file <- NULL
    room <- new.env(parent = globalenv())
    for (name in names(input$bound)) assign(name, input$bound[[name]], envir = room)
    no_quit <- function(...) stop("quit() would end R; the last value of a script is its result", call. = FALSE)
    assign("quit", no_quit, envir = room)
    assign("q", no_quit, envir = room)
    note <- function(condition) {
      if (length(notes) < 20L) notes <<- c(notes, sprintf("line %d: %s", line_of(sys.calls(), file),
        conditionMessage(condition)))
      invokeRestart("muffleWarning")
    }
    failed <- function(condition) {
      list(error = conditionMessage(condition), line = line, notes = notes)
    }
    lines <- strsplit(input$formula, "\n", fixed = TRUE)[[1L]]
    tryCatch({
      file <- srcfilecopy("script", lines)
      script <- parse(text = lines, keep.source = TRUE, srcfile = file)
      value <- withCallingHandlers(eval(script, room), warning = note,
        error = function(condition) line <<- line_of(sys.calls(), file))
      line <- NA_integer_
      list(output = shape(value), notes = notes)
    }, error = failed)
  }

  function(from, to) {
    options(keep.source = TRUE)
    con <- file(from, "rb", raw = TRUE)
    input <- read(con)
    close(con)
    result <- compute(input)
    con <- file(to, "wb", raw = TRUE)
    write(result, con)
    close(con)
    invisible()
  }
})
`;
